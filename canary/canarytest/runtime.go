package canarytest

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/identity"
)

// runtime is the daemon's state: blobs, images and snapshots, with containerd's rules for what is
// transferred and what is kept.
type runtime struct {
	config DaemonConfig

	mu        sync.Mutex
	blobs     map[string][]byte
	images    []storedImage
	snapshots map[string]time.Time
}

type storedImage struct {
	name, id, manifest string
	content            v1.Manifest
}

func newRuntime(config DaemonConfig) *runtime {
	return &runtime{config: config, blobs: map[string][]byte{}, snapshots: map[string]time.Time{}}
}

// newClient returns the client of one pull: real runtimes share no connections between pulls, and
// leave them idle for a while when one is done.
func (r *runtime) newClient() *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(r.config.CA)
	names := &Names{hosts: r.config.Hosts}
	return &http.Client{Transport: &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		DialContext:     names.Dial,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		IdleConnTimeout: time.Second,
	}}
}

// pull transfers what is not there yet and returns the image's identifier.
func (r *runtime) pull(ctx context.Context, image string) (string, error) {
	if r.config.Stuck {
		<-ctx.Done()
		return "", ctx.Err()
	}
	ref, err := name.ParseReference(image)
	if err != nil {
		return "", err
	}
	client := r.newClient()
	base := "https://" + ref.Context().RegistryStr() + "/v2/" + ref.Context().RepositoryStr()
	raw, err := get(ctx, client, base+"/manifests/"+ref.Identifier())
	if err != nil {
		return "", err
	}
	var manifest v1.Manifest
	if err := json.Unmarshal(raw, &manifest); err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := sha256.Sum256(raw)
	stored := storedImage{
		name: ref.Name(), id: manifest.Config.Digest.String(),
		manifest: "sha256:" + hex.EncodeToString(sum[:]), content: manifest,
	}
	r.blobs[stored.manifest] = raw
	for _, blob := range slices.Concat([]v1.Descriptor{manifest.Config}, manifest.Layers) {
		if _, held := r.blobs[blob.Digest.String()]; held {
			continue
		}
		content, err := get(ctx, client, base+"/blobs/"+blob.Digest.String())
		if err != nil {
			return "", err
		}
		r.blobs[blob.Digest.String()] = content
	}
	if err := r.unpack(stored); err != nil {
		return "", err
	}
	r.images = append(slices.DeleteFunc(r.images, func(i storedImage) bool { return i.name == stored.name }), stored)
	return stored.id, nil
}

func (r *runtime) unpack(image storedImage) error {
	chains, err := r.chains(image)
	if err != nil {
		return err
	}
	for i, chain := range chains {
		if _, there := r.snapshots[chain]; !there {
			r.snapshots[chain] = time.Now()
		}
		if r.config.Discard {
			delete(r.blobs, image.content.Layers[i].Digest.String())
		}
	}
	return nil
}

func (r *runtime) chains(image storedImage) ([]string, error) {
	var config v1.ConfigFile
	if err := json.Unmarshal(r.blobs[image.id], &config); err != nil {
		return nil, err
	}
	var diffs []digest.Digest
	var chains []string
	for _, diff := range config.RootFS.DiffIDs {
		diffs = append(diffs, digest.Digest(diff.String()))
		chains = append(chains, identity.ChainID(diffs).String())
	}
	return chains, nil
}

func get(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("getting %s: %s", url, answer.Status)
	}
	return io.ReadAll(answer.Body)
}

// find returns the images with that name or identifier, of which there are several when one
// content has several names.
func (r *runtime) find(ref string) []storedImage {
	full := ref
	if parsed, err := name.ParseReference(ref); err == nil {
		full = parsed.Name()
	}
	var id string
	for _, i := range r.images {
		if i.id == ref || i.name == full {
			id = i.id
		}
	}
	var found []storedImage
	for _, i := range r.images {
		if i.id == id {
			found = append(found, i)
		}
	}
	return found
}

// remove takes away all names of an image and whatever no other image refers to. One that only
// serves the CRI unties the name alone when asked by name, as CRI-O does.
func (r *runtime) remove(ref string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.find(ref)
	if len(found) == 0 {
		return nil
	}
	if r.config.Plain && ref != found[0].id && found[0].name != found[0].id {
		for i := range r.images {
			if r.images[i].id == found[0].id {
				r.images[i].name = found[0].id
			}
		}
		return nil
	}
	r.images = slices.DeleteFunc(r.images, func(i storedImage) bool { return i.id == found[0].id })
	blobs, snapshots := map[string]bool{}, map[string]bool{}
	for _, i := range r.images {
		blobs[i.manifest], blobs[i.id] = true, true
		for _, layer := range i.content.Layers {
			blobs[layer.Digest.String()] = true
		}
		chains, err := r.chains(i)
		if err != nil {
			return err
		}
		for _, chain := range chains {
			snapshots[chain] = true
		}
	}
	for digest := range r.blobs {
		if !blobs[digest] {
			delete(r.blobs, digest)
		}
	}
	for chain := range r.snapshots {
		if !snapshots[chain] {
			delete(r.snapshots, chain)
		}
	}
	return nil
}
