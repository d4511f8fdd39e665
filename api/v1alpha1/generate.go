package v1alpha1

//go:generate go run -C ../../internal/crdgen . -root ../..
