// Package witness watches the TCP sockets of a process and its children while something happens,
// and says which of the expected remotes the bytes came from. It asks the kernel (sock_diag for
// the sockets and their counters, /proc for their owners) and touches no traffic.
//
// A route is named only when it was seen; otherwise the finding is Unknown and says why.
package witness
