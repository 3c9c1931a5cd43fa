// The headers that tests share, once precompiled, need a program to belong to (tests/CMakeLists.txt).
int main() {}
