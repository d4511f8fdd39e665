package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	structuralcel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// Costs that the API server grants, from k8s.io/apiserver/pkg/apis/cel.
const (
	costPerCall = 1_000_000
	costBudget  = 10_000_000
)

func repositoryRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestGeneratedFilesAreCurrent(t *testing.T) {
	root := repositoryRoot(t)
	files, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 4 {
		t.Errorf("generated %d files, want three CRDs and the DeepCopy methods", len(files))
	}
	for path, want := range files {
		got, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Error(err)
			continue
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the types and rules give; run go generate ./api/v1alpha1", path)
		}
	}
}

// TestAPIServerTakesTheCRDs runs the API server's own validation of CRDs, which compiles every
// expression and estimates what it costs.
func TestAPIServerTakesTheCRDs(t *testing.T) {
	for _, plural := range []string{"proxyprofiles", "proxyrevisions", "nodeproxies"} {
		for _, e := range crdvalidation.ValidateCustomResourceDefinition(context.Background(), internalCRD(t, plural)) {
			t.Errorf("%s: %v", plural, e)
		}
	}
}

// internalCRD reads a generated CRD as the API server sees it after defaulting.
func internalCRD(t *testing.T, plural string) *apiextensions.CustomResourceDefinition {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(repositoryRoot(t), "deploy", "crds", "proxyward.dev_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var def apiext.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(raw, &def); err != nil {
		t.Fatal(err)
	}
	apiext.SetDefaults_CustomResourceDefinition(&def)
	apiext.SetDefaults_CustomResourceDefinitionSpec(&def.Spec)
	def.Status.StoredVersions = []string{"v1alpha1"}
	var out apiextensions.CustomResourceDefinition
	if err := apiext.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&def, &out, nil); err != nil {
		t.Fatal(err)
	}
	return &out
}

// admission does to an object what the API server does on a create: prune, default, validate.
type admission struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	cel        *structuralcel.Validator
}

func newAdmission(t *testing.T, plural string) *admission {
	t.Helper()
	def := internalCRD(t, plural)
	schema := def.Spec.Validation
	if schema == nil {
		schema = def.Spec.Versions[0].Schema
	}
	structural, err := structuralschema.NewStructural(schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	return &admission{
		structural: structural,
		schema:     validator,
		cel:        structuralcel.NewValidator(structural, true, costPerCall),
	}
}

// admit returns the object as it would be stored, and why it would be refused.
func (a *admission) admit(t *testing.T, raw []byte) (map[string]any, field.ErrorList) {
	t.Helper()
	var obj map[string]any
	if err := json.Unmarshal(raw, &obj); err != nil {
		t.Fatal(err)
	}
	obj = integers(obj).(map[string]any)
	pruning.Prune(obj, a.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, a.structural)
	defaulting.Default(obj, a.structural)
	errs := validation.ValidateCustomResource(nil, obj, a.schema)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, a.structural, obj)...)
	if len(errs) > 0 {
		return obj, errs
	}
	celErrs, _ := a.cel.Validate(context.Background(), nil, a.structural, obj, nil, costBudget)
	return obj, celErrs
}

// integers turns whole numbers into int64, as the API server's decoder does.
func integers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = integers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case float64:
		if n := int64(v); float64(n) == v {
			return n
		}
	}
	return v
}
