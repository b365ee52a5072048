// reduce: ROWS_AT_ONCE results side by side in a workgroup, each shared by PARTS invocations.
// A phase sums up (or takes the maximum of) the terms of a row; a later phase may use what an earlier one found.

var<workgroup> scratch: array<State, SCRATCH>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let column = lane % ROWS_AT_ONCE;
  let part = lane / ROWS_AT_ONCE;
  let row = (group.y * FOLD + group.x) * ROWS_AT_ONCE + column;
  let live = row < ROWS;
  var state = start();
  // @unroll p < PHASES
  if (live) {
    for (var k = part; k < TERMS; k += PARTS) {
      state = accumulate$p(row, k, state);
    }
  }
  if (PARTS > 1u) {
    scratch[lane % SCRATCH] = state;
    workgroupBarrier();
    for (var reach = PARTS / 2u; reach > 0u; reach /= 2u) {
      if (part < reach) {
        scratch[lane % SCRATCH] = merge$p(scratch[lane % SCRATCH], scratch[(lane + reach * ROWS_AT_ONCE) % SCRATCH]);
      }
      workgroupBarrier();
    }
    state = scratch[column % SCRATCH];
    workgroupBarrier();
  }
  // @end
  if (live) {
    if (part == 0u) {
      finish_row(row, state);
    }
    for (var k = part; k < TERMS_TO_STORE; k += PARTS) {
      finish_element(row, k, state);
    }
  }
}
