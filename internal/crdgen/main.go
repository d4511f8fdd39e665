// Command crdgen writes what is generated from the types of the Proxyward API: their DeepCopy
// methods, and their CustomResourceDefinitions with the admission rules of api/v1alpha1 put in as
// CEL expressions.
//
// It is a module of its own so that what only generates and tests CRDs is no dependency of the
// programs.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "folder of the repository")
	flag.Parse()
	if err := run(*root); err != nil {
		fmt.Fprintln(os.Stderr, "crdgen:", err)
		os.Exit(1)
	}
}

// run generates everything from the types under root and writes it there.
func run(root string) error {
	files, err := generate(root)
	if err != nil {
		return err
	}
	for path, content := range files {
		if err := os.WriteFile(filepath.Join(root, path), content, 0o644); err != nil {
			return fmt.Errorf("writing generated code: %w", err)
		}
	}
	return nil
}

// generate returns what is generated, by path under root.
func generate(root string) (map[string][]byte, error) {
	files, err := definitions(root)
	if err != nil {
		return nil, err
	}
	files[filepath.Join("api", "v1alpha1", "zz_generated.deepcopy.go")], err = deepcopies(root)
	return files, err
}
