# Builds graphrun on Debian 12 and keeps what the tarball of scripts/package has:
#   docker build -t graphrun . && docker run --rm -v "$PWD":/work graphrun train model.json
FROM debian:12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends build-essential cmake ninja-build git pkg-config \
    libfmt-dev nlohmann-json3-dev zlib1g-dev libpng-dev libfreetype-dev fonts-liberation && rm -rf /var/lib/apt/lists/*
COPY . /source
RUN cmake -S /source -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DGRAPHRUN_UNITY=ON \
    && cmake --build /build && cmake --install /build --prefix /opt/graphrun --strip

FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends libpng16-16 && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/graphrun /opt/graphrun
ENV PATH=/opt/graphrun/bin:$PATH
WORKDIR /work
ENTRYPOINT ["graphrun"]
CMD ["--help"]
