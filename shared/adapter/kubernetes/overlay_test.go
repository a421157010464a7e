package kubernetes

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"pgregory.net/rapid"
)

// kubectl merges pod specifications with the package that "kubectl patch" uses.
func kubectl(base, over corev1.PodSpec) (spec corev1.PodSpec, err error) {
	original, err := json.Marshal(base)
	if err != nil {
		return spec, err
	}
	patch, err := json.Marshal(over)
	if err != nil {
		return spec, err
	}
	patch = []byte(strings.Replace(string(patch), `"containers":null`, `"containers":[]`, 1))
	merged, err := strategicpatch.StrategicMergePatch(original, patch, corev1.PodSpec{})
	if err != nil {
		return spec, err
	}
	return spec, json.Unmarshal(merged, &spec)
}

// TestOverlayIsThatOfKubectl merges random pod specifications. Each field of the type can be
// set.
func TestOverlayIsThatOfKubectl(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base, over := corev1.PodSpec{}, corev1.PodSpec{}
		fill(t, reflect.ValueOf(&base).Elem(), 0)
		fill(t, reflect.ValueOf(&over).Elem(), 0)
		want, wantErr := kubectl(base, over)
		got, err := overlay(base, over)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("got error %v, want %v", err, wantErr)
		}
		if err == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\nunder %s\ngot\n%s\nwant\n%s", text(t, base), text(t, over), text(t, got), text(t, want))
		}
	})
}

func text(t *rapid.T, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// fill sets random fields of a value to one of few values, so that keys of lists are equal.
func fill(t *rapid.T, v reflect.Value, depth int) {
	if v.Type() == reflect.TypeFor[resource.Quantity]() {
		v.Set(reflect.ValueOf(resource.MustParse(rapid.SampledFrom([]string{"1", "2Gi"}).Draw(t, "quantity"))))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && rapid.IntRange(0, 2+depth).Draw(t, v.Type().Field(i).Name) == 0 {
				fill(t, v.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), depth)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(0, 4).Draw(t, "length"), 4))
		for i := range v.Len() {
			fill(t, v.Index(i), depth)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, depth)
		fill(t, value, depth)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int32, reflect.Int64:
		v.SetInt(rapid.Int64Range(0, 3).Draw(t, "number"))
	}
}
