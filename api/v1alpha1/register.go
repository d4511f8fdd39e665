package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion returns the group and version of this package's types.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}
}

// AddToScheme registers the types of this package, and no other, with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(),
		&ProxyProfile{}, &ProxyProfileList{},
		&ProxyRevision{}, &ProxyRevisionList{},
		&NodeProxy{}, &NodeProxyList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
