package controlplane

import (
	"encoding/json"
	"fmt"
)

// The parts of a kubeconfig that the lab writes. JSON is YAML, so the standard
// library is enough to write one.
type kubeconfig struct {
	APIVersion     string         `json:"apiVersion"`
	Kind           string         `json:"kind"`
	CurrentContext string         `json:"current-context"`
	Clusters       []namedCluster `json:"clusters"`
	Users          []namedUser    `json:"users"`
	Contexts       []namedContext `json:"contexts"`
}

type namedCluster struct {
	Name    string `json:"name"`
	Cluster struct {
		Server string `json:"server"`
		CA     []byte `json:"certificate-authority-data"`
	} `json:"cluster"`
}

type namedUser struct {
	Name string `json:"name"`
	User struct {
		Cert []byte `json:"client-certificate-data"`
		Key  []byte `json:"client-key-data"`
	} `json:"user"`
}

type namedContext struct {
	Name    string `json:"name"`
	Context struct {
		Cluster string `json:"cluster"`
		User    string `json:"user"`
	} `json:"context"`
}

// newKubeconfig makes the file by which user talks to server, with everything
// it needs inside.
func newKubeconfig(server, user string, ca []byte, p pair) ([]byte, error) {
	const cluster = "lab"
	c := namedCluster{Name: cluster}
	c.Cluster.Server, c.Cluster.CA = server, ca
	u := namedUser{Name: user}
	u.User.Cert, u.User.Key = p.cert, p.key
	x := namedContext{Name: cluster}
	x.Context.Cluster, x.Context.User = cluster, user
	data, err := json.MarshalIndent(kubeconfig{
		APIVersion: "v1", Kind: "Config", CurrentContext: cluster,
		Clusters: []namedCluster{c}, Users: []namedUser{u}, Contexts: []namedContext{x},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig of %q: %w", user, err)
	}
	return append(data, '\n'), nil
}
