package preflight

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	manifestDir   = "/etc/kubernetes/manifests"
	kubeletConfig = "/var/lib/kubelet/config.yaml"
)

// checkManifests finds proxy variables in static pods: kubeadm copies those of whoever ran it, and
// nobody changes them with the profile.
func checkManifests(_ context.Context, s *subject) []Result {
	dir, err := s.staticPodPath()
	if err != nil {
		return []Result{untested("", "mend the file", err.Error())}
	}
	entries, err := s.host.Root.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return []Result{pass("", "there is no "+dir)}
	}
	if err != nil {
		return []Result{untested("", "make it readable for root", err.Error())}
	}
	var leaks, unread []string
	read := 0
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || e.IsDir() {
			continue // the kubelet passes over them too
		}
		file := path.Join(dir, e.Name())
		content, err := s.host.Root.ReadFile(file)
		if err == nil {
			var names []string
			names, err = proxyVariables(content)
			if len(names) > 0 {
				leaks = append(leaks, fmt.Sprintf("%s sets %s", file, strings.Join(names, ", ")))
			}
		}
		if err != nil {
			unread = append(unread, said(file, err.Error()))
			continue
		}
		read++
	}
	switch {
	case len(leaks) > 0:
		return []Result{warn("", "remove these variables there (kubeadm copies those of the shell it runs in): control-plane components need no proxy, and these do not follow the profile", append(leaks, unread...)...)}
	case len(unread) > 0:
		return []Result{untested("", "mend or remove what cannot be read as a pod", unread...)}
	}
	return []Result{pass("", fmt.Sprintf("%s in %s, none with a proxy variable", count(read, "manifest"), dir))}
}

// staticPodPath is where this node's kubelet reads static pods.
func (s *subject) staticPodPath() (string, error) {
	content, err := s.host.Root.ReadFile(kubeletConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return manifestDir, nil
	}
	if err != nil {
		return "", err
	}
	var config struct {
		StaticPodPath string `json:"staticPodPath"`
	}
	if err := yaml.Unmarshal(content, &config); err != nil {
		return "", fmt.Errorf("reading %q: %w", kubeletConfig, err)
	}
	if !path.IsAbs(config.StaticPodPath) {
		return manifestDir, nil
	}
	return config.StaticPodPath, nil
}

// pod is as much of a pod as matters here.
type pod struct {
	Spec struct {
		Containers     []container `json:"containers"`
		InitContainers []container `json:"initContainers"`
	} `json:"spec"`
}

type container struct {
	Env []struct {
		Name string `json:"name"`
	} `json:"env"`
}

// proxyVariables are the names of those that a manifest sets, each once and sorted. Values, which
// may hold a password, are not looked at.
func proxyVariables(manifest []byte) ([]string, error) {
	var p pod
	if err := yaml.Unmarshal(manifest, &p); err != nil {
		return nil, errors.New("it cannot be read as a pod")
	}
	var names []string
	for _, c := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers) {
		for _, e := range c.Env {
			if strings.HasSuffix(strings.ToUpper(e.Name), "_PROXY") {
				names = append(names, e.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func nilIfAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
