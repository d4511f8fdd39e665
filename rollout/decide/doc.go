// Package decide is the rollout as values: from profiles, nodes, their NodeProxies, the slots taken
// and the time, [Decide] says what to do next. It reads no clock and reaches nothing.
//
// # What counts
//
// A node is taken when it has a claim in the ledger. It is unavailable when it is taken, not Ready,
// cordoned by somebody else, silent, or when an attempt on it neither finished nor was rolled back
// into health. The occupancy of a profile is the number of its unavailable nodes; a node that has
// been silent or not Ready for longer than [SilentLimit] no longer counts, and a node that just
// joined has a claim beside the budget.
//
// No available node is approved while the occupancy without it has reached the cap. A node that is
// unavailable anyhow costs no further slot; it only needs fewer than cap other nodes in hand.
//
// # What is kept
//
// Everything follows from objects, so a controller that is killed goes on. What no other object
// says is in the [Ledger]: who has a slot, when the first nodes were done, which nodes are put off.
package decide
