// Package applytest tries the transaction where it matters most: killed before, in and after every
// single thing that it does to a host. It has a model of systemd that outlives the process that
// uses it, wrappers that kill at a chosen point, and a suite that a bench with the model and a
// bench with a real node can both run.
package applytest
