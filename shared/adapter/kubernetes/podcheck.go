package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// CheckPodSpec returns the faults of the pod specification of a job, each with the field's
// path. The specification may have only fields that Sortie supports. It must not name an object
// that may belong to others, such as a Secret. Its pod must conform to the Pod Security
// Standard "restricted".
func CheckPodSpec(document json.RawMessage) []*fault.Fault {
	return checkPod("podSpec", document, authorJob)
}

// CheckPodDefaults returns the faults of the pod specification of a pool, each with the field's
// path. It may also have the fields that the operator of a pool chooses, but none that reaches
// the node.
func CheckPodDefaults(document json.RawMessage) []*fault.Fault {
	return checkPod("settings.podDefaults", document, authorPool)
}

func checkPod(field string, document json.RawMessage, who author) (found []*fault.Fault) {
	refuse := func(field, why string) {
		f := fault.New(fault.Unprocessable, "%s: %s", field, why)
		f.Field = field
		found = append(found, f)
	}
	pod, err := parsePod(field, document)
	if err != nil {
		at, why, _ := strings.Cut(err.Error(), ": ")
		refuse(at, why)
		return found
	}
	walker{who, refuse}.walk(reflect.ValueOf(pod), "", field)
	if len(found) > 0 {
		return found
	}
	if len(pod.Containers) == 0 {
		pod.Containers = []corev1.Container{{}}
	}
	setPod(&pod, port.LaunchSpec{})
	if why := unrestricted(&pod); why != nil {
		refuse(field, why.Error())
	}
	return found
}

// join returns the faults as one error, or nil without a fault.
func join(faults []*fault.Fault) error {
	problems := make([]error, len(faults))
	for i, f := range faults {
		problems[i] = errors.New(f.Message)
	}
	return errors.Join(problems...)
}

// walker visits the fields that a pod specification sets.
type walker struct {
	who    author
	refuse func(field, why string)
}

// walk checks a value and the fields below it. path is its path in fieldsOf, at the path in the
// document.
func (w walker) walk(v reflect.Value, path, at string) {
	if v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0 {
		return
	}
	if path != "" {
		whole, some := w.who.supports(path)
		if whole {
			if rule := rules[path]; rule != nil {
				if why := rule(w.who, reflect.Indirect(v).Interface()); why != "" {
					w.refuse(at, why)
				}
			}
			return
		}
		if !some {
			w.refuse(at, w.who.refusal(path))
			return
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		w.walk(v.Elem(), path, at)
	case reflect.Slice:
		for i := range v.Len() {
			w.walk(v.Index(i), entryOf(path), at+"."+strconv.Itoa(i))
		}
	case reflect.Struct:
		for field, value := range v.Fields() {
			name, inline := jsonName(field)
			if inline {
				w.walk(value, path, at)
				continue
			}
			w.walk(value, strings.TrimPrefix(path+"."+name, "."), at+"."+name)
		}
	default:
		w.refuse(at, w.who.refusal(path))
	}
}

// entryOf returns the path of the entries of a list in fieldsOf.
func entryOf(list string) string {
	if list == "containers" || list == "initContainers" {
		return anyContainer
	}
	return list + ".*"
}

// jsonName returns the name of a field in JSON. inline reports that JSON has the fields of the
// field instead of it.
func jsonName(field reflect.StructField) (name string, inline bool) {
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name, name == "" && slices.Contains(strings.Split(options, ","), "inline")
}

// evaluator has the checks of the Pod Security Standards.
var evaluator = sync.OnceValues(func() (policy.Evaluator, error) { return policy.NewEvaluator(policy.DefaultChecks(), nil) })

// unrestricted returns why a pod does not conform to the Pod Security Standard "restricted", or
// nil if it does.
func unrestricted(pod *corev1.PodSpec) error {
	checks, err := evaluator()
	if err != nil {
		return fmt.Errorf("cannot use the Pod Security Standards: %w", err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	result := policy.AggregateCheckResults(checks.EvaluatePod(level, &metav1.ObjectMeta{}, pod))
	if result.Allowed {
		return nil
	}
	return fmt.Errorf("violates the Pod Security Standard restricted: %s", result.ForbiddenDetail())
}
