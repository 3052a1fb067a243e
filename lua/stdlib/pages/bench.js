// What a suite's result adds.
function benchSection() {
  return null;
}
