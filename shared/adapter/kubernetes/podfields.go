package kubernetes

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// author is the author of a pod specification.
type author int

// The authors. Each can set the fields of the ones before.
const (
	authorJob  author = iota // each client that can store a job
	authorPool               // an administrator
)

// anyContainer represents "containers.*" and "initContainers.*" in the paths of fields.
const anyContainer = "container"

// fieldsOf lists the fields of a pod specification that Sortie supports, by the author who can
// set them. A field includes all fields below it. A field that is not listed is refused, and so
// are fields that later versions of the API add.
var fieldsOf = [...][]string{
	authorJob: slices.Concat([]string{
		"activeDeadlineSeconds", "affinity", "automountServiceAccountToken", "dnsConfig", "dnsPolicy", "enableServiceLinks",
		"hostAliases", "hostname", "nodeSelector", "os.name", "preemptionPolicy", "priorityClassName", "restartPolicy",
		"setHostnameAsFQDN", "shareProcessNamespace", "subdomain", "terminationGracePeriodSeconds", "tolerations",
		"topologySpreadConstraints",
	}, below("securityContext", "appArmorProfile.type", "fsGroup", "fsGroupChangePolicy", "runAsGroup", "runAsNonRoot", "runAsUser",
		"seccompProfile.type", "supplementalGroups", "supplementalGroupsPolicy",
	), below("volumes.*", "downwardAPI", "emptyDir", "image", "name", "projected.defaultMode", "projected.sources.*.downwardAPI"), below("volumes.*.ephemeral.volumeClaimTemplate.spec", "accessModes", "resources", "storageClassName", "volumeMode"), below(anyContainer, "args", "command", "env.*.name", "env.*.value", "env.*.valueFrom.fieldRef", "env.*.valueFrom.resourceFieldRef",
		"image", "imagePullPolicy", "name", "ports.*.containerPort", "ports.*.name", "ports.*.protocol", "resources.limits",
		"resources.requests", "restartPolicy", "terminationMessagePolicy", "tty", "workingDir",
	), below(anyContainer+".securityContext", "allowPrivilegeEscalation", "appArmorProfile.type", "capabilities.add", "capabilities.drop",
		"privileged", "procMount", "readOnlyRootFilesystem", "runAsGroup", "runAsNonRoot", "runAsUser", "seccompProfile.type",
	), below(anyContainer+".volumeMounts.*", "mountPath", "name", "readOnly", "recursiveReadOnly", "subPath", "subPathExpr"), probe("livenessProbe"), probe("readinessProbe"), probe("startupProbe"), handler("lifecycle.postStart"), handler("lifecycle.preStop"), below(anyContainer+".lifecycle", "postStart.sleep", "preStop.sleep")),
	authorPool: slices.Concat([]string{
		"hostUsers", "imagePullSecrets", "nodeName", "priority", "resourceClaims", "runtimeClassName", "schedulerName", "schedulingGates",
		"serviceAccount", "serviceAccountName", "securityContext.appArmorProfile.localhostProfile", "securityContext.seLinuxChangePolicy",
		"securityContext.seLinuxOptions", "securityContext.seccompProfile.localhostProfile",
	}, below("volumes.*", "configMap", "persistentVolumeClaim", "projected.sources.*.configMap", "projected.sources.*.secret",
		"projected.sources.*.serviceAccountToken", "secret",
	), below(anyContainer, "env.*.valueFrom.configMapKeyRef", "env.*.valueFrom.secretKeyRef", "envFrom", "resources.claims"), below(anyContainer+".securityContext", "appArmorProfile.localhostProfile", "seLinuxOptions", "seccompProfile.localhostProfile")),
}

func below(path string, fields ...string) []string {
	for i, field := range fields {
		fields[i] = path + "." + field
	}
	return fields
}

func probe(name string) []string {
	return append(handler(name), below(anyContainer+"."+name, "failureThreshold", "grpc", "initialDelaySeconds", "periodSeconds",
		"successThreshold", "tcpSocket.port", "terminationGracePeriodSeconds", "timeoutSeconds")...)
}

func handler(name string) []string {
	return below(anyContainer+"."+name, "exec", "httpGet.httpHeaders", "httpGet.path", "httpGet.port", "httpGet.scheme")
}

// parents contains the fields of fieldsOf and the fields around them.
var parents = func() (all [len(fieldsOf)]map[string]bool) {
	for who, fields := range fieldsOf {
		all[who] = map[string]bool{"containers": true, "initContainers": true}
		for _, field := range fields {
			for at := strings.LastIndexByte(field, '.'); at >= 0; at = strings.LastIndexByte(field[:at], '.') {
				all[who][field[:at]] = true
			}
		}
	}
	return all
}()

// supports reports whether an author can set a field, and whether it can set some field
// below it.
func (a author) supports(path string) (whole, some bool) {
	for who := authorJob; who <= a; who++ {
		whole = whole || slices.Contains(fieldsOf[who], path)
		some = some || parents[who][path]
	}
	return whole, some
}

// refusal returns why an author cannot set a field, and what is allowed instead.
func (a author) refusal(path string) string {
	last := path[strings.LastIndexByte(path, '.')+1:]
	whole, some := authorPool.supports(path)
	switch {
	case path == "nodeName":
		return "not allowed, want a nodeSelector or an affinity"
	case path == "ephemeralContainers":
		return "not allowed in a job; leave it out"
	case slices.Contains([]string{"secret", "secretKeyRef", "secretRef", "envFrom"}, last) && a == authorJob:
		return "not allowed, the Secret may be another owner's; want a variable of the job with secretRef, or settings.podDefaults of the pool"
	case whole || some:
		return "not allowed, the operator of the pool chooses it; want it in settings.podDefaults of the pool"
	case strings.HasPrefix(path, "volumes.*.") && !slices.Contains(reaching, last):
		return "not allowed, want a volume of the type emptyDir, ephemeral, image, downwardAPI or projected"
	case slices.Contains(reaching, last):
		return "not allowed, it reaches the node; leave it out"
	}
	return "not allowed, Sortie does not support the field; leave it out"
}

// reaching lists the names of fields with which a pod reaches its node.
var reaching = []string{
	"hostNetwork", "hostPID", "hostIPC", "hostPort", "hostIP", "host", "sysctls", "windowsOptions", "mountPropagation", "volumeDevices",
	"hostPath", "csi", "flexVolume", "nfs", "iscsi", "fc",
}

// rules return the problem of the value of a supported field, or "" if it is valid. They are
// the rules of the Pod Security Standard "restricted", with the field and the valid values, and
// some rules of Sortie.
var rules = map[string]func(who author, value any) string{
	"os.name":                                                  want(new(corev1.Linux)),
	"priorityClassName":                                        priorityProblem,
	"tolerations":                                              tolerationProblem,
	"hostUsers":                                                want(new(false)),
	"securityContext.runAsNonRoot":                             want(new(true)),
	"securityContext.runAsUser":                                userProblem,
	"securityContext.seccompProfile.type":                      profileProblem,
	"securityContext.appArmorProfile.type":                     profileProblem,
	anyContainer + ".securityContext.runAsNonRoot":             want(new(true)),
	anyContainer + ".securityContext.runAsUser":                userProblem,
	anyContainer + ".securityContext.seccompProfile.type":      profileProblem,
	anyContainer + ".securityContext.appArmorProfile.type":     profileProblem,
	anyContainer + ".securityContext.privileged":               want(new(false)),
	anyContainer + ".securityContext.allowPrivilegeEscalation": want(new(false)),
	anyContainer + ".securityContext.procMount":                want(new(corev1.DefaultProcMount)),
	anyContainer + ".securityContext.capabilities.add":         addProblem,
	anyContainer + ".securityContext.capabilities.drop":        dropProblem,
}
