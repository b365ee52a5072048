// arms: several independent maps in one launch; the workgroup's number says which of them it works on.

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  arm(group.y * FOLD + group.x, lane);
}
