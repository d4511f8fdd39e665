package prober

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/canary"
	"github.com/proxyward/proxyward/internal/proxyenv"
)

// Logins are the credentials for registries, by host[:port] as images name it.
type Logins map[string]*canary.RegistryAuth

// ReadPullSecret reads a file in the form of a Secret of type kubernetes.io/dockerconfigjson, which
// is also that of Docker's config.json. Its errors quote nothing of the file.
func ReadPullSecret(path string) (Logins, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the pull secret: %w", err)
	}
	var file struct {
		Auths map[string]authn.AuthConfig `json:"auths"`
	}
	if err := json.Unmarshal(text, &file); err != nil || len(file.Auths) == 0 {
		return nil, fmt.Errorf("reading the pull secret %q: it has no usable \"auths\"; give the .dockerconfigjson of the Secret", path)
	}
	logins := Logins{}
	for host, auth := range file.Auths {
		logins[registryOf(host)] = &canary.RegistryAuth{Username: auth.Username, Password: proxyenv.NewSecret(auth.Password, "")}
	}
	return logins, nil
}

// registryOf returns the registry that a key of a pull secret means, as image references name it. A
// key may be a URL and have a path: logging in to Docker Hub writes "https://index.docker.io/v1/".
func registryOf(key string) string {
	host := strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	host, _, _ = strings.Cut(host, "/")
	if host == "docker.io" {
		return name.DefaultRegistry
	}
	return host
}

// Canaries returns the images that a revision proves with, each with the login for its registry
// alone. A canary that names a pull secret needs a login.
func Canaries(c v1alpha1.Canary, logins Logins) ([]Canary, error) {
	var out []Canary
	for _, named := range []struct {
		path  string
		role  v1alpha1.CanaryRole
		image *v1alpha1.CanaryImage
	}{
		{"spec.canary.internal", v1alpha1.CanaryInternal, c.Internal},
		{"spec.canary.external", v1alpha1.CanaryExternal, c.External},
	} {
		if named.image == nil {
			continue
		}
		ref, err := name.ParseReference(named.image.Image)
		if err != nil {
			return nil, v1alpha1.FieldError{Path: named.path + ".image", Found: named.image.Image, Problem: "it is no image", Fix: "write registry/repository:tag"}
		}
		canary := Canary{Role: named.role, Image: named.image.Image}
		if named.image.PullSecretName != "" {
			if canary.Auth = logins[ref.Context().RegistryStr()]; canary.Auth == nil {
				return nil, v1alpha1.FieldError{
					Path: named.path + ".pullSecretName", Found: named.image.PullSecretName,
					Problem: fmt.Sprintf("no login for %s was given", ref.Context().RegistryStr()), Fix: "give the Secret's .dockerconfigjson with --pull-secret FILE",
				}
			}
		}
		out = append(out, canary)
	}
	return out, nil
}
