package kubernetes

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	tags "k8s.io/apimachinery/third_party/forked/golang/json"
)

// overlay merges the pod specification of a later layer into that of an earlier one, like
// "kubectl patch". It merges objects, and lists whose entries have a key.
func overlay(base, over corev1.PodSpec) (corev1.PodSpec, error) {
	original, err := document(base)
	if err != nil {
		return base, err
	}
	patch, err := document(over)
	if err != nil {
		return base, err
	}
	if over.Containers == nil {
		patch["containers"] = []any{} // null would remove those of base
	}
	if err := mergeObject(original, patch, reflect.TypeFor[corev1.PodSpec]()); err != nil {
		return base, err
	}
	merged, err := json.Marshal(original)
	if err != nil {
		return base, err
	}
	var spec corev1.PodSpec
	return spec, json.Unmarshal(merged, &spec)
}

// document returns the fields of a pod specification that are set.
func document(spec corev1.PodSpec) (fields map[string]any, err error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	return fields, json.Unmarshal(text, &fields)
}

// mergeObject merges the fields of over into base. Both are objects of the Go type of. Lists
// are merged according to the tags patchStrategy and patchMergeKey of the type. The package
// strategicpatch of Kubernetes does the same, but links parsers of OpenAPI documents.
func mergeObject(base, over map[string]any, of reflect.Type) error {
	for name, value := range over {
		var err error
		switch old := base[name].(type) {
		case map[string]any:
			object, same := value.(map[string]any)
			if !same {
				break
			}
			value, err = mergeField(old, object, of, name)
		case []any:
			list, same := value.([]any)
			if !same {
				break
			}
			value, err = mergeListField(old, list, of, name)
		}
		if err != nil {
			return err
		}
		base[name] = value
	}
	return nil
}

// mergeField merges a field that is an object, unless its strategy is to replace it.
func mergeField(base, over map[string]any, of reflect.Type, name string) (map[string]any, error) {
	field, strategies, _, err := tags.LookupPatchMetadataForStruct(of, name)
	if err != nil || slices.Contains(strategies, "replace") {
		return over, err
	}
	return base, mergeObject(base, over, field)
}

// mergeListField merges a field that is a list, or replaces it, according to its strategy.
func mergeListField(base, over []any, of reflect.Type, name string) ([]any, error) {
	field, strategies, key, err := tags.LookupPatchMetadataForStruct(of, name)
	if err != nil || !slices.Contains(strategies, "merge") {
		return over, err
	}
	for _, entry := range slices.Concat(base, over) {
		if identity(entry, key) == nil {
			return nil, fmt.Errorf("%s: an entry without %s", name, key)
		}
	}
	all := slices.Clone(base)
	for _, entry := range over {
		at := position(all, entry, key)
		if at < 0 {
			all = append(all, entry)
			continue
		}
		old, isObject := all[at].(map[string]any)
		object, areObjects := entry.(map[string]any)
		if !isObject || !areObjects {
			continue
		}
		if err := mergeObject(old, object, field.Elem()); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return reorder(all, base, over, key), nil
}

// reorder keeps the entries of over in their order. It inserts the others before those that
// follow them in base.
func reorder(all, base, over []any, key string) []any {
	var ours, others []any
	for _, entry := range all {
		if position(over, entry, key) < 0 {
			others = append(others, entry)
		} else {
			ours = append(ours, entry)
		}
	}
	slices.SortStableFunc(ours, func(a, b any) int { return position(over, a, key) - position(over, b, key) })
	slices.SortStableFunc(others, func(a, b any) int { return position(base, a, key) - position(base, b, key) })
	ordered := make([]any, 0, len(all))
	for _, entry := range ours {
		follows := position(base, entry, key)
		for len(others) > 0 && position(base, others[0], key) < follows {
			ordered, others = append(ordered, others[0]), others[1:]
		}
		ordered = append(ordered, entry)
	}
	return append(ordered, others...)
}

// identity returns the value that identifies an entry of a list: the value of its key, or the
// entry itself if it is not an object. It is nil for an object without the key.
func identity(entry any, key string) any {
	if object, ok := entry.(map[string]any); ok {
		return object[key]
	}
	return entry
}

// position returns the index of an entry in a list, -1 if the list does not have it.
func position(list []any, entry any, key string) int {
	return slices.IndexFunc(list, func(other any) bool { return identity(other, key) == identity(entry, key) })
}
