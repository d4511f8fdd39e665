// Package controlplane builds a Kubernetes control plane from Go modules and
// runs it: etcd, kube-apiserver and, where nodes are to join,
// kube-controller-manager and kube-scheduler.
//
// The programs are compiled once into a cache folder named by their versions
// ([Dir], [Build]); starting them ([Start]) needs nothing else from outside.
// The module that pins what they are compiled from is the folder tools.
package controlplane
