#include <graphrun/session.h>
#include <graphrun/weights.h>

#include <cstdio>

int main() {
  graphrun::Session session(graphrun::load_model("houses.json"));  // reads the table, plans and allocates
  session.train();
  graphrun::save_weights(session, "houses.safetensors");
  const graphrun::HostTensor prices = session.predict(graphrun::load_inputs("houses.safetensors", "new.csv"));
  for (const float price : prices.elements<float>()) std::printf("%.2f\n", price);
}
