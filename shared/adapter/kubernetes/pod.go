package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kjson "sigs.k8s.io/json"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// parsePod decodes a pod specification. Unknown fields are errors. If it has a container, that
// is the worker's container and gets its name.
func parsePod(field string, document json.RawMessage) (corev1.PodSpec, error) {
	var spec corev1.PodSpec
	if len(document) == 0 {
		return spec, nil
	}
	strict, err := kjson.UnmarshalStrict(document, &spec)
	if err = errors.Join(append(strict, err)...); err != nil {
		return spec, fmt.Errorf("%s: %w", field, err)
	}
	if n := len(spec.Containers); n > 1 {
		return spec, fmt.Errorf("%s.containers: %d containers, want one, the worker's; "+
			"a helper is an init container with restartPolicy Always, which ends with the worker", field, n)
	}
	for i := range spec.Containers {
		spec.Containers[i].Name = container
	}
	return spec, nil
}

// podSpec returns the pod of an attempt. It merges the specifications of the pool and then of
// the job into the defaults of the deployment. Values that Sortie must set replace theirs.
// secret is the name of the Secret with the environment.
func podSpec(defaults json.RawMessage, spec port.LaunchSpec, secret string) (corev1.PodSpec, error) {
	pod, err := parsePod("podDefaults", defaults)
	if err != nil {
		return pod, err
	}
	layers := map[string]json.RawMessage{"podSpec": spec.PodSpec}
	if k := platform.SettingsOf[platform.KubernetesSettings](spec.Placement); k != nil {
		layers["settings.podDefaults"] = k.PodDefaults
	}
	// A record of an earlier version may contain fields that are refused now.
	if err := errors.Join(join(CheckPodDefaults(layers["settings.podDefaults"])), join(CheckPodSpec(layers["podSpec"]))); err != nil {
		return pod, err
	}
	for _, field := range []string{"settings.podDefaults", "podSpec"} {
		layer, err := parsePod(field, layers[field])
		if err == nil && len(layers[field]) > 0 {
			pod, err = overlay(pod, layer)
		}
		if err != nil {
			return pod, err
		}
	}
	if len(pod.Containers) == 0 {
		pod.Containers = []corev1.Container{{}}
	}
	setWorker(&pod.Containers[0], spec, secret)
	setPod(&pod, spec)
	return pod, unrestricted(&pod)
}

// setWorker sets the fields of the container that Sortie determines.
func setWorker(c *corev1.Container, spec port.LaunchSpec, secret string) {
	c.Name, c.Image = container, spec.Image
	if len(spec.Command) > 0 {
		c.Args = make([]string, len(spec.Command))
		for i, arg := range spec.Command {
			c.Args[i] = strings.ReplaceAll(arg, "$", "$$") // otherwise Kubernetes would replace $(NAME)
		}
	}
	c.Env = slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool { _, ours := spec.Env[v.Name]; return ours })
	c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{
		SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret}},
	})
	c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	memory := resource.NewQuantity(int64(spec.MemoryMB)<<20, resource.BinarySI)
	atLeast(&c.Resources.Requests, corev1.ResourceCPU, resource.NewQuantity(int64(spec.CPUs), resource.DecimalSI))
	atLeast(&c.Resources.Requests, corev1.ResourceMemory, memory)
	atLeast(&c.Resources.Limits, corev1.ResourceMemory, memory)
}

// atLeast sets a resource unless the pod specification sets it.
func atLeast(list *corev1.ResourceList, name corev1.ResourceName, quantity *resource.Quantity) {
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	if _, set := (*list)[name]; !set {
		(*list)[name] = *quantity
	}
}

// setPod sets the fields of the pod that Sortie determines. Security settings that the
// specifications omit get the values of the Pod Security Standard "restricted".
func setPod(pod *corev1.PodSpec, spec port.LaunchSpec) {
	pod.RestartPolicy = corev1.RestartPolicyNever
	pod.TerminationGracePeriodSeconds = new(seconds(spec.StopGrace))
	pod.AutomountServiceAccountToken, pod.EnableServiceLinks = new(false), new(false)
	if pod.SecurityContext == nil {
		pod.SecurityContext = &corev1.PodSecurityContext{}
	}
	if pod.SecurityContext.RunAsNonRoot == nil {
		pod.SecurityContext.RunAsNonRoot = new(true)
	}
	if pod.SecurityContext.SeccompProfile == nil {
		pod.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	for i, v := range pod.Volumes {
		if v.VolumeSource == (corev1.VolumeSource{}) {
			pod.Volumes[i].EmptyDir = &corev1.EmptyDirVolumeSource{} // as the cluster does
		}
	}
	for i := range pod.InitContainers {
		restrict(&pod.InitContainers[i])
	}
	restrict(&pod.Containers[0])
	if spec.Region != "" {
		prefer(pod, spec.Region)
	}
}

// prefer adds a preference for nodes of a region.
func prefer(pod *corev1.PodSpec, region string) {
	if pod.Affinity == nil {
		pod.Affinity = &corev1.Affinity{}
	}
	if pod.Affinity.NodeAffinity == nil {
		pod.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	node := pod.Affinity.NodeAffinity
	node.PreferredDuringSchedulingIgnoredDuringExecution = append(node.PreferredDuringSchedulingIgnoredDuringExecution,
		corev1.PreferredSchedulingTerm{Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: corev1.LabelTopologyRegion, Operator: corev1.NodeSelectorOpIn, Values: []string{region},
		}}}})
}

func restrict(c *corev1.Container) {
	if c.SecurityContext == nil {
		c.SecurityContext = &corev1.SecurityContext{}
	}
	s := c.SecurityContext
	if s.AllowPrivilegeEscalation == nil {
		s.AllowPrivilegeEscalation = new(false)
	}
	if s.Capabilities == nil {
		s.Capabilities = &corev1.Capabilities{}
	}
	if len(s.Capabilities.Drop) == 0 {
		s.Capabilities.Drop = []corev1.Capability{"ALL"}
	}
}

// seconds returns a duration in whole seconds, rounded up, at least 1. With 0 the cluster would
// delete a pod without waiting for its end.
func seconds(d time.Duration) int64 { return max(1, int64(math.Ceil(d.Seconds()))) }

func isTrue(b *bool) bool { return b != nil && *b }
