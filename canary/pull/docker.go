package pull

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/api/types/jsonstream"
	"github.com/moby/moby/api/types/registry"
	"github.com/moby/moby/client"
)

// What Docker's API says of a layer during a pull. It has no other form than these words.
const (
	layerHeld       = "Already exists"
	layerDownloaded = "Download complete"
	layerPulled     = "Pull complete"
)

// Docker pulls one image through a Docker daemon's API.
type Docker struct {
	socket string
	image  Image
	server string
	client *client.Client
}

// OpenDocker prepares pulls of image through the socket, an absolute path.
func OpenDocker(socket string, image Image) (*Docker, error) {
	server, err := image.server()
	if err != nil {
		return nil, err
	}
	c, err := client.New(client.WithHost("unix://" + socket))
	if err != nil {
		return nil, fmt.Errorf("opening Docker socket %q: %w", socket, err)
	}
	return &Docker{socket: socket, image: image, server: server, client: c}, nil
}

// Close ends the connection.
func (d *Docker) Close() error {
	if err := d.client.Close(); err != nil {
		return fmt.Errorf("closing Docker socket %q: %w", d.socket, err)
	}
	return nil
}

// Clear removes the image and checks that it is gone. An image that a container uses or that has
// another name is left alone: the error is then a *HeldError.
func (d *Docker) Clear(ctx context.Context) error {
	found, err := d.inspect(ctx)
	if err != nil || found == nil {
		return err
	}
	if others := d.others(found.RepoTags); len(others) > 0 {
		return &HeldError{d.image.Name, "its other names " + quoted(others)}
	}
	_, err = d.client.ImageRemove(ctx, d.image.Name, client.ImageRemoveOptions{PruneChildren: true})
	switch {
	case errdefs.IsConflict(err):
		return &HeldError{d.image.Name, "a container"}
	case err != nil && !errdefs.IsNotFound(err):
		return fmt.Errorf("removing image %q through %q: %w", d.image.Name, d.socket, err)
	}
	left, err := d.inspect(ctx)
	if err != nil {
		return err
	}
	if left != nil {
		return fmt.Errorf("removing image %q through %q: the daemon still has it: remove it by hand and see the daemon's log",
			d.image.Name, d.socket)
	}
	return nil
}

func (d *Docker) inspect(ctx context.Context) (*client.ImageInspectResult, error) {
	found, err := d.client.ImageInspect(ctx, d.image.Name)
	if errdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("asking for image %q through %q: %w", d.image.Name, d.socket, err)
	}
	return &found, nil
}

func (d *Docker) others(tags []string) []string {
	own, err := name.ParseReference(d.image.Name)
	if err != nil {
		return tags
	}
	return slices.DeleteFunc(slices.Clone(tags), func(tag string) bool {
		ref, err := name.ParseReference(tag)
		return err == nil && ref.Name() == own.Name()
	})
}

// Pull pulls and reads from the daemon's progress what was transferred.
func (d *Docker) Pull(ctx context.Context) (Arrival, error) {
	options := client.ImagePullOptions{}
	if d.image.Username != "" {
		header, err := authconfig.Encode(registry.AuthConfig{
			Username: d.image.Username, Password: d.image.Password.Reveal(), ServerAddress: d.server,
		})
		if err != nil {
			return Arrival{}, fmt.Errorf("encoding the credentials for %q: %w", d.server, err)
		}
		options.RegistryAuth = header
	}
	arrival := Arrival{Began: time.Now()}
	layers := progress{}
	err := d.pull(ctx, options, layers)
	arrival.Took = time.Since(arrival.Began)
	if err != nil {
		return arrival, fmt.Errorf("pulling image %q through %q: %w", d.image.Name, d.socket, err)
	}
	found, err := d.inspect(ctx)
	if err != nil {
		return arrival, err
	}
	if found == nil {
		return arrival, fmt.Errorf("looking for image %q after its pull through %q: the daemon does not have it", d.image.Name, d.socket)
	}
	arrival.Digest = found.ID
	for _, digest := range found.RepoDigests {
		if _, after, ok := strings.Cut(digest, "@"); ok {
			arrival.Digest = after
		}
	}
	return layers.judge(arrival, found.Size), nil
}

func (d *Docker) pull(ctx context.Context, options client.ImagePullOptions, layers progress) error {
	stream, err := d.client.ImagePull(ctx, d.image.Name, options)
	if err != nil {
		return err
	}
	for message, err := range stream.JSONMessages(ctx) {
		if err != nil {
			return err
		}
		if message.Error != nil {
			return message.Error
		}
		layers.add(message)
	}
	return ctx.Err()
}

// progress is what a daemon said of each layer, by its short digest.
type progress map[string]*layerProgress

type layerProgress struct {
	size       int64
	held, done bool
}

func (p progress) add(message jsonstream.Message) {
	if message.ID == "" {
		return
	}
	switch message.Status {
	case layerHeld, layerDownloaded, layerPulled:
	default:
		if message.Progress == nil {
			return
		}
	}
	l, ok := p[message.ID]
	if !ok {
		l = &layerProgress{}
		p[message.ID] = l
	}
	switch message.Status {
	case layerHeld:
		l.held = true
	case layerDownloaded, layerPulled:
		l.done = true
	}
	if message.Progress != nil {
		l.size = max(l.size, message.Progress.Total)
	}
}

// judge says what was transferred. unpacked is the image's size on disk, which stands in for the
// layers' where the daemon did not tell theirs.
func (p progress) judge(arrival Arrival, unpacked int64) Arrival {
	known := true
	for id, l := range p {
		switch {
		case l.held:
			arrival.Held = append(arrival.Held, id)
		case l.done:
			arrival.Bytes += l.size
			known = known && l.size > 0
		}
	}
	slices.Sort(arrival.Held)
	arrival.Size = arrival.Bytes
	if !known || arrival.Size == 0 {
		arrival.Size, arrival.Unpacked = unpacked, true
	}
	if arrival.Bytes > 0 || len(arrival.Held) > 0 {
		arrival.JudgedBy = ByProgress
	}
	return arrival
}
