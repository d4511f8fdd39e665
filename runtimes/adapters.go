package runtimes

// All returns the adapters, one line for each kind of daemon.
func All() []Adapter {
	return []Adapter{
		containerd{},
		crio{},
		docker{},
		kubelet{},
		k3s(),
		rke2(),
	}
}
