#!/usr/bin/env bash
# run.sh GRAPHRUN SOURCES: exported C on a Cortex-M4F in QEMU (mps2-an386): the self-test passes, and how much flash and
# RAM the network takes there, in double and in float. With the environment's ONNX2C the same network as that program
# writes it is measured beside it. Exit code 77: a tool is missing.
set -euo pipefail
graphrun=$1 sources=$2 here=$(dirname "$0")
for tool in arm-none-eabi-gcc qemu-system-arm; do
  command -v $tool > /dev/null || { echo "skipped: there is no $tool"; exit 77; }
done
echo 'int main(void){return 0;}' | arm-none-eabi-gcc -x c - --specs=rdimon.specs -mcpu=cortex-m4 -mthumb -o /dev/null 2> /dev/null ||
  { echo "skipped: there is no newlib for arm-none-eabi"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
machine="-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16"
strict="-std=c99 -Wall -Wextra -Wpedantic -Werror -Wconversion -Os -ffunction-sections -fdata-sections"

size_of() {  # object: bytes of code and constants, bytes of variables
  arm-none-eabi-size "$1" | awk 'NR == 2 { print $1 " bytes of flash, " $2 + $3 " bytes of RAM" }'
}

for name in models/xor models/peaks models/digits models/realestate_mlp2 examples/signals/waves; do
  "$graphrun" train "$sources/$name.json" --quiet --epochs=2 --save-weights="$folder/net.safetensors" > /dev/null
  "$graphrun" export-c "$folder/net.safetensors" -o "$folder/net.c"
  for real in double float; do
    ulps=1 how=
    [ $real = double ] || ulps=100000 how=-DNET_FLOAT  # sums of float: told, not promised
    arm-none-eabi-gcc $machine $strict $how -c "$folder/net.c" -o "$folder/net.o"
    arm-none-eabi-gcc $machine -Os -c "$here/startup.c" -o "$folder/startup.o"
    # newlib's own isnan() converts between widths.
    arm-none-eabi-gcc $machine $strict -Wno-conversion $how -DNET_SELF_TEST -DNET_SELF_TEST_ULPS=$ulps \
      "$folder/net.c" "$folder/startup.o" -T "$here/mps2.ld" -nostartfiles --specs=rdimon.specs -Wl,--gc-sections -lm \
      -o "$folder/net.elf"
    echo "$name in $real: $(size_of "$folder/net.o"), arena $(sed -n 's/#define NET_ARENA_BYTES //p' "$folder/net.c")"
    timeout 60 qemu-system-arm -M mps2-an386 -nographic -semihosting-config enable=on,target=native \
      -kernel "$folder/net.elf" < /dev/null
  done
  if [ -n "${ONNX2C:-}" ]; then
    "$graphrun" export-onnx "$folder/net.safetensors" -o "$folder/net.onnx"
    "$ONNX2C" "$folder/net.onnx" > "$folder/other.c"
    arm-none-eabi-gcc $machine -std=c99 -Os -ffunction-sections -fdata-sections -c "$folder/other.c" -o "$folder/other.o"
    echo "$name by onnx2c: $(size_of "$folder/other.o")"
  fi
done
