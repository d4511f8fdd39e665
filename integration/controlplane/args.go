package controlplane

import "fmt"

// The arguments below are the ones whose defaults do not suit: everything
// listens on the loopback device but the API server, and writes into Dir only.

func (c *ControlPlane) etcdArgs() []string {
	client := fmt.Sprintf("http://127.0.0.1:%d", c.ports.etcdClient)
	peer := fmt.Sprintf("http://127.0.0.1:%d", c.ports.etcdPeer)
	return []string{
		"--name=lab",
		"--data-dir=" + c.path("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=lab=" + peer,
		// The lab's data need not survive a power cut, and the disk is shared.
		"--unsafe-no-fsync",
	}
}

func (c *ControlPlane) apiServerArgs() []string {
	// The API server refuses to publish a loopback address as its endpoint.
	reconciler := "lease"
	if c.cfg.Address.IsLoopback() {
		reconciler = "none"
	}
	return []string{
		"--endpoint-reconciler-type=" + reconciler,
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", c.ports.etcdClient),
		"--bind-address=" + c.cfg.Address.String(),
		"--advertise-address=" + c.cfg.Address.String(),
		fmt.Sprintf("--secure-port=%d", c.ports.api),
		"--cert-dir=" + c.cfg.Dir,
		"--tls-cert-file=" + c.path("serving.crt"),
		"--tls-private-key-file=" + c.path("serving.key"),
		"--client-ca-file=" + c.path("ca.crt"),
		"--kubelet-client-certificate=" + c.path("kubelet-client.crt"),
		"--kubelet-client-key=" + c.path("kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.path("tokens.crt"),
		"--service-account-signing-key-file=" + c.path("tokens.key"),
		"--service-cluster-ip-range=" + c.cfg.ServiceCIDR.String(),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--audit-policy-file=" + c.path("audit-policy.yaml"),
		"--audit-log-path=" + c.AuditLog(),
	}
}

func (c *ControlPlane) controllerManagerArgs() []string {
	return []string{
		"--kubeconfig=" + c.path("controller-manager.kubeconfig"),
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.ports.controllerManager),
		"--cert-dir=" + c.cfg.Dir,
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.path("tokens.key"),
		"--root-ca-file=" + c.path("ca.crt"),
		"--allocate-node-cidrs=true",
		"--cluster-cidr=" + c.cfg.PodCIDR.String(),
		"--service-cluster-ip-range=" + c.cfg.ServiceCIDR.String(),
	}
}

func (c *ControlPlane) schedulerArgs() []string {
	return []string{
		"--kubeconfig=" + c.path("scheduler.kubeconfig"),
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.ports.scheduler),
		"--tls-cert-file=" + c.path("serving.crt"),
		"--tls-private-key-file=" + c.path("serving.key"),
		"--leader-elect=false",
	}
}
