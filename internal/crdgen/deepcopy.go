package main

import (
	"bytes"
	"fmt"
	"io"

	"golang.org/x/tools/go/packages"
	"sigs.k8s.io/controller-tools/pkg/deepcopy"
	"sigs.k8s.io/controller-tools/pkg/genall"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"
)

// deepcopies returns the generated DeepCopy methods of the API types.
func deepcopies(root string) ([]byte, error) {
	pkgs, err := loader.LoadRootsWithConfig(&packages.Config{Dir: root}, "./api/v1alpha1")
	if err != nil {
		return nil, fmt.Errorf("loading the API types: %w", err)
	}
	reg := &markers.Registry{}
	if err := (deepcopy.Generator{}).RegisterMarkers(reg); err != nil {
		return nil, fmt.Errorf("registering markers: %w", err)
	}
	out := &memory{}
	ctx := &genall.GenerationContext{
		Collector:  &markers.Collector{Registry: reg},
		Checker:    &loader.TypeChecker{},
		Roots:      pkgs,
		OutputRule: out,
	}
	if err := (deepcopy.Generator{}).Generate(ctx); err != nil {
		return nil, fmt.Errorf("generating DeepCopy methods: %w", err)
	}
	for _, pkg := range pkgs {
		if len(pkg.Errors) > 0 {
			return nil, fmt.Errorf("reading the API types: %w", pkg.Errors[0])
		}
	}
	return out.Bytes(), nil
}

// memory takes the one file that is generated.
type memory struct{ bytes.Buffer }

// Open implements genall.OutputRule.
func (m *memory) Open(*loader.Package, string) (io.WriteCloser, error) { return m, nil }

// Close implements io.Closer.
func (m *memory) Close() error { return nil }
