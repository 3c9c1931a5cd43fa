# What all tests run with: ctest reads this before it starts them. No test writes into the home of whoever runs it.
set(ENV{GRAPHRUN_KERNEL_CACHE} off)
# Nor takes an executor of theirs.
unset(ENV{GRAPHRUN_PLUGIN_PATH})
