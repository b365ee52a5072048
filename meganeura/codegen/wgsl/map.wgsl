// map: every invocation computes LANES neighbouring elements of the result.

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let v = (group.y * FOLD + group.x) * WORKGROUP + lane;
  if (v < COUNT) {
    element(v);
  }
}
