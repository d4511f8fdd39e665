package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The versions that [Build] compiles. They repeat what tools/go.mod requires,
// so that finding the programs takes no go command; a test keeps the two equal.
const (
	KubernetesVersion = "v1.37.2"
	EtcdVersion       = "v3.7.3"
	KwokVersion       = "v0.8.0"
)

// BuildCommand is what a person runs, in the integration module, to fill the
// cache folder.
const BuildCommand = "go run ./controlplane/build"

// binary is one program and what it is compiled from.
type binary struct {
	name string
	pkg  string
	// stamp is the linker's -X argument that tells the program its version;
	// empty where the source states it.
	stamp string
	// cold is how long the compile takes on two cores with an empty build
	// cache, for the progress line; what an earlier one compiled is not counted.
	cold string
}

// stampKubernetes is needed by every client: without it the server reports
// v0.0.0-master, which they cannot parse as a release.
const stampKubernetes = "k8s.io/component-base/version.gitVersion=" + KubernetesVersion

// binaries lists the programs in the order of their compilation: what serves
// an API server alone comes first.
func binaries() []binary {
	return []binary{
		{name: "etcd", pkg: "go.etcd.io/etcd/server/v3", cold: "1m"},
		{name: "kube-apiserver", pkg: "k8s.io/kubernetes/cmd/kube-apiserver", stamp: stampKubernetes, cold: "10m"},
		{name: "kubectl", pkg: "k8s.io/kubernetes/cmd/kubectl", stamp: stampKubernetes, cold: "1m"},
		{name: "kubelet", pkg: "k8s.io/kubernetes/cmd/kubelet", stamp: stampKubernetes, cold: "3m"},
		{name: "kube-controller-manager", pkg: "k8s.io/kubernetes/cmd/kube-controller-manager", stamp: stampKubernetes, cold: "2m"},
		{name: "kube-scheduler", pkg: "k8s.io/kubernetes/cmd/kube-scheduler", stamp: stampKubernetes, cold: "20s"},
		{name: "kwok", pkg: "sigs.k8s.io/kwok/cmd/kwok", stamp: "sigs.k8s.io/kwok/pkg/consts.Version=" + KwokVersion, cold: "30s"},
	}
}

// Dir returns the folder that holds the programs of these versions, whether
// or not it exists: proxyward-lab/controlplane-VERSION in the user's cache
// folder ($XDG_CACHE_HOME, else ~/.cache). envtest takes it as
// KUBEBUILDER_ASSETS.
func Dir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the user's cache folder: %w; set XDG_CACHE_HOME or HOME", err)
	}
	return filepath.Join(cache, "proxyward-lab", "controlplane-"+KubernetesVersion+"-etcd-"+EtcdVersion), nil
}

// MissingError says which programs are not in the cache folder yet.
type MissingError struct {
	Dir   string
	Names []string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("finding %s in %q: not built yet; run %q in the integration module, which takes about 10 minutes once",
		strings.Join(e.Names, ", "), e.Dir, BuildCommand)
}

// Find returns [Dir] when it holds every program, and a [*MissingError] when
// it does not.
func Find() (string, error) {
	dir, err := Dir()
	if err != nil {
		return "", err
	}
	missing, err := missingIn(dir)
	if err != nil {
		return "", err
	}
	if len(missing) == 0 {
		return dir, nil
	}
	names := make([]string, len(missing))
	for i, b := range missing {
		names[i] = b.name
	}
	return "", &MissingError{Dir: dir, Names: names}
}

// missingIn returns the programs that dir does not hold. A program has its
// name only once it is complete, so presence is proof enough.
func missingIn(dir string) ([]binary, error) {
	var missing []binary
	for _, b := range binaries() {
		path := filepath.Join(dir, b.name)
		switch _, err := os.Stat(path); {
		case os.IsNotExist(err):
			missing = append(missing, b)
		case err != nil:
			return nil, fmt.Errorf("looking for %q: %w", path, err)
		}
	}
	return missing, nil
}
