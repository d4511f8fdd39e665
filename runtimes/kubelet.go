package runtimes

import (
	"fmt"
	"net"
	"net/url"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// kubelet is the adapter of kubelet.service. It pulls nothing: the runtime does.
type kubelet struct{}

func (kubelet) Target() v1alpha1.Target { return v1alpha1.TargetKubelet }
func (kubelet) Units() []string         { return []string{"kubelet.service"} }
func (kubelet) Experimental() bool      { return false }

// Inspect reads the unit and names the kubeconfig.
func (kubelet) Inspect(host HostFS, name string) (Runtime, error) {
	u, err := FindUnit(host, name)
	if err != nil {
		return Runtime{}, err
	}
	if u == nil {
		return Runtime{}, missing(name)
	}
	out := Runtime{
		Target: v1alpha1.TargetKubelet, Unit: name, API: PullNone,
		Restart: RestartEffect{KillsContainers: False, Why: "containers are the runtime's children and not the kubelet's; below Kubernetes 1.35 its restart makes running pods unready for a moment"},
	}
	file, _, err := kubeconfig(host, u)
	if err != nil {
		return Runtime{}, err
	}
	if file != "" {
		out.Config = append(out.Config, file)
	}
	return out, nil
}

// APIServer returns the host:port of the API server as the kubelet of a unit reaches it, and the
// kubeconfig that says so. It may be a load balancer's, a control-plane node's own, or a proxy's on
// the node, so it is not what other nodes use. Without a kubeconfig (the kubelet stands alone, or
// has not joined) address is empty.
func APIServer(host HostFS, unit string) (address, file string, err error) {
	u, err := FindUnit(host, unit)
	if err != nil {
		return "", "", err
	}
	if u == nil {
		return "", "", missing(unit)
	}
	file, content, err := kubeconfig(host, u)
	if err != nil || file == "" {
		return "", "", err
	}
	server, err := currentServer(file, content)
	if err != nil {
		return "", file, err
	}
	parsed, err := url.Parse(server)
	if err != nil || parsed.Hostname() == "" {
		return "", file, fmt.Errorf("reading %s: the server %q is not https://host[:port]; correct it", file, v1alpha1.MaskURL(server))
	}
	port := parsed.Port()
	switch {
	case port != "":
	case parsed.Scheme == "http":
		port = "80"
	default:
		port = "443"
	}
	return net.JoinHostPort(parsed.Hostname(), port), file, nil
}

// kubeconfig returns the file of the flag --kubeconfig or, before the node has joined, that of
// --bootstrap-kubeconfig; "" when neither exists.
func kubeconfig(host HostFS, u *Unit) (file string, content []byte, err error) {
	words := u.command(u.Environment(host))
	for _, name := range []string{"kubeconfig", "bootstrap-kubeconfig"} {
		file, _ := flag(words, name)
		if file == "" {
			continue
		}
		content, found, err := readOptional(host, file)
		if err != nil || found {
			return file, content, err
		}
	}
	return "", nil, nil
}

// currentServer returns the server of a kubeconfig's current context. What else it holds, client
// keys and tokens, is not read.
func currentServer(file string, content []byte) (string, error) {
	var cfg struct {
		CurrentContext string `json:"current-context"`
		Contexts       []struct {
			Name    string `json:"name"`
			Context struct {
				Cluster string `json:"cluster"`
			} `json:"context"`
		} `json:"contexts"`
		Clusters []struct {
			Name    string `json:"name"`
			Cluster struct {
				Server string `json:"server"`
			} `json:"cluster"`
		} `json:"clusters"`
	}
	if err := decodeYAML(file, content, &cfg); err != nil {
		return "", err
	}
	for _, c := range cfg.Contexts {
		if c.Name != cfg.CurrentContext {
			continue
		}
		for _, cluster := range cfg.Clusters {
			if cluster.Name == c.Context.Cluster {
				return cluster.Cluster.Server, nil
			}
		}
	}
	return "", fmt.Errorf("reading %s: its current context %q names no cluster with a server; correct it", file, cfg.CurrentContext)
}
