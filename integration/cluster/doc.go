//go:build linux

// Package cluster makes a Kubernetes cluster of a lab: a control plane beside
// the lab's services, and a real kubelet on each node that joins.
//
// The API server is api.corp.example:6443 to the nodes. Services have no proxy
// of kube-proxy's kind; the one that every pod uses, kubernetes.default, is
// served on each node by systemd-socket-proxyd at its usual address. Pods get
// an address of their node's range; ranges of different nodes are not routed
// to each other.
package cluster
