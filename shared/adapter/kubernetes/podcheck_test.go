package kubernetes

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// The messages of refused fields.
const (
	node     = "not allowed, it reaches the node"
	operator = "not allowed, the operator of the pool chooses it"
	secret   = "not allowed, the Secret may be another owner's"
	unknown  = "not allowed, Sortie does not support the field"
)

// dangers has documents with one field that a job must not have, by its path. Documents
// that begin with "+" are permitted in the defaults of a pool.
var dangers = map[string]struct{ document, says string }{
	"hostNetwork":                          {`{"hostNetwork": true}`, node},
	"hostPID":                              {`{"hostPID": true}`, node},
	"hostIPC":                              {`{"hostIPC": true}`, node},
	"os.name":                              {`{"os": {"name": "windows"}}`, "want linux or no field"},
	"hostnameOverride":                     {`{"hostnameOverride": "node-1"}`, unknown},
	"overhead":                             {`{"overhead": {"cpu": "1"}}`, unknown},
	"readinessGates":                       {`{"readinessGates": [{"conditionType": "a"}]}`, unknown},
	"resources":                            {`{"resources": {"limits": {"cpu": "1"}}}`, unknown},
	"schedulingGroup":                      {`{"schedulingGroup": {}}`, unknown},
	"ephemeralContainers":                  {`{"ephemeralContainers": [{"name": "a"}]}`, "not allowed in a job"},
	"nodeName":                             {`+{"nodeName": "a"}`, "not allowed, want a nodeSelector"},
	"hostUsers":                            {`+{"hostUsers": false}`, operator},
	"imagePullSecrets":                     {`+{"imagePullSecrets": [{"name": "registry"}]}`, operator},
	"priority":                             {`+{"priority": 2000001000}`, operator},
	"resourceClaims":                       {`+{"resourceClaims": [{"name": "gpu", "resourceClaimName": "others"}]}`, operator},
	"runtimeClassName":                     {`+{"runtimeClassName": "runc-privileged"}`, operator},
	"schedulerName":                        {`+{"schedulerName": "own"}`, operator},
	"schedulingGates":                      {`+{"schedulingGates": [{"name": "a"}]}`, operator},
	"serviceAccountName":                   {`+{"serviceAccountName": "admin"}`, operator},
	"serviceAccount":                       {`+{"serviceAccount": "admin"}`, operator},
	"priorityClassName":                    {`{"priorityClassName": "system-node-critical"}`, "system-node-critical is for pods of the cluster"},
	"tolerations":                          {`+{"tolerations": [{"operator": "Exists"}]}`, "tolerates nodes of the control plane"},
	"securityContext.runAsUser":            {`{"securityContext": {"runAsUser": 0}}`, "0 is root"},
	"securityContext.runAsNonRoot":         {`{"securityContext": {"runAsNonRoot": false}}`, "want true or no field"},
	"securityContext.sysctls":              {`{"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}`, node},
	"securityContext.windowsOptions":       {`{"securityContext": {"windowsOptions": {"hostProcess": true}}}`, node},
	"securityContext.seLinuxChangePolicy":  {`+{"securityContext": {"seLinuxChangePolicy": "Recursive"}}`, operator},
	"securityContext.seLinuxOptions":       {`+{"securityContext": {"seLinuxOptions": {"level": "s0:c1,c2"}}}`, operator},
	"securityContext.seccompProfile.type":  {`{"securityContext": {"seccompProfile": {"type": "Unconfined"}}}`, "want RuntimeDefault"},
	"securityContext.appArmorProfile.type": {`{"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}`, "want RuntimeDefault"},
	"volumes.0.secret":                     {`+{"volumes": [{"name": "v", "secret": {"secretName": "others"}}]}`, secret},
	"volumes.0.configMap":                  {`+{"volumes": [{"name": "v", "configMap": {"name": "others"}}]}`, operator},
	"volumes.0.persistentVolumeClaim":      {`+{"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "others"}}]}`, operator},
	"volumes.0.projected.sources.0.secret": {`+{"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "others"}}]}}]}`, secret},
	"volumes.1.projected.sources.1.configMap": {
		`+{"volumes": [{"name": "u"}, {"name": "v", "projected": {"sources": [{"downwardAPI": {}}, {"configMap": {"name": "others"}}]}}]}`, operator,
	},
	"volumes.0.projected.sources.0.serviceAccountToken": {`+{"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]}`, operator},
	"volumes.0.projected.sources.0.clusterTrustBundle":  {`{"volumes": [{"name": "v", "projected": {"sources": [{"clusterTrustBundle": {"path": "t"}}]}}]}`, "not allowed, want a volume"},
	"volumes.0.projected.sources.0.podCertificate":      {`{"volumes": [{"name": "v", "projected": {"sources": [{"podCertificate": {"signerName": "a"}}]}}]}`, "not allowed, want a volume"},
	"volumes.0.ephemeral.volumeClaimTemplate.spec.dataSource": {
		`{"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "others"}}}}}]}`, "not allowed",
	},
	"containers.0.ports.0.hostPort":                         {`{"containers": [{"name": "a", "ports": [{"containerPort": 1, "hostPort": 80}]}]}`, node},
	"containers.0.ports.0.hostIP":                           {`{"containers": [{"name": "a", "ports": [{"containerPort": 1, "hostIP": "::"}]}]}`, node},
	"containers.0.envFrom":                                  {`+{"containers": [{"name": "a", "envFrom": [{"secretRef": {"name": "others"}}]}]}`, secret},
	"containers.0.env.0.valueFrom.secretKeyRef":             {`+{"containers": [{"name": "a", "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "others", "key": "k"}}}]}]}`, secret},
	"containers.0.env.0.valueFrom.configMapKeyRef":          {`+{"containers": [{"name": "a", "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "others", "key": "k"}}}]}]}`, operator},
	"containers.0.env.0.valueFrom.fileKeyRef":               {`{"containers": [{"name": "a", "env": [{"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}}}]}]}`, unknown},
	"containers.0.resources.claims":                         {`+{"containers": [{"name": "a", "resources": {"claims": [{"name": "gpu"}]}}]}`, operator},
	"containers.0.volumeDevices":                            {`{"containers": [{"name": "a", "volumeDevices": [{"name": "v", "devicePath": "/dev/sda"}]}]}`, node},
	"containers.0.volumeMounts.0.mountPropagation":          {`{"containers": [{"name": "a", "volumeMounts": [{"name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional"}]}]}`, node},
	"containers.0.livenessProbe.httpGet.host":               {`{"containers": [{"name": "a", "livenessProbe": {"httpGet": {"host": "169.254.169.254", "port": 80}}}]}`, node},
	"containers.0.startupProbe.tcpSocket.host":              {`{"containers": [{"name": "a", "startupProbe": {"tcpSocket": {"host": "10.0.0.1", "port": 80}}}]}`, node},
	"containers.0.lifecycle.preStop.httpGet.host":           {`{"containers": [{"name": "a", "lifecycle": {"preStop": {"httpGet": {"host": "10.0.0.1", "port": 80}}}}]}`, node},
	"containers.0.lifecycle.stopSignal":                     {`{"containers": [{"name": "a", "lifecycle": {"stopSignal": "SIGKILL"}}]}`, unknown},
	"containers.0.terminationMessagePath":                   {`{"containers": [{"name": "a", "terminationMessagePath": "/dev/../x"}]}`, unknown},
	"containers.0.securityContext.privileged":               {`{"containers": [{"name": "a", "securityContext": {"privileged": true}}]}`, "want false or no field"},
	"containers.0.securityContext.allowPrivilegeEscalation": {`{"containers": [{"name": "a", "securityContext": {"allowPrivilegeEscalation": true}}]}`, "want false or no field"},
	"containers.0.securityContext.capabilities.add":         {`{"containers": [{"name": "a", "securityContext": {"capabilities": {"add": ["NET_BIND_SERVICE", "SYS_ADMIN"]}}}]}`, "SYS_ADMIN reaches the node"},
	"containers.0.securityContext.capabilities.drop":        {`{"containers": [{"name": "a", "securityContext": {"capabilities": {"drop": ["NET_RAW"]}}}]}`, "want [ALL]"},
	"containers.0.securityContext.procMount":                {`{"containers": [{"name": "a", "securityContext": {"procMount": "Unmasked"}}]}`, "want Default or no field"},
	"containers.0.securityContext.seccompProfile.type":      {`{"containers": [{"name": "a", "securityContext": {"seccompProfile": {"type": "Unconfined"}}}]}`, "want RuntimeDefault"},
	"containers.0.securityContext.appArmorProfile.type":     {`{"containers": [{"name": "a", "securityContext": {"appArmorProfile": {"type": "Unconfined"}}}]}`, "want RuntimeDefault"},
	"containers.0.securityContext.windowsOptions":           {`{"containers": [{"name": "a", "securityContext": {"windowsOptions": {"hostProcess": true}}}]}`, node},
	"containers.0.securityContext.seLinuxOptions":           {`+{"containers": [{"name": "a", "securityContext": {"seLinuxOptions": {"level": "s0"}}}]}`, operator},
	"containers.0.securityContext.runAsUser":                {`{"containers": [{"name": "a", "securityContext": {"runAsUser": 0}}]}`, "0 is root"},
	"containers.0.securityContext.runAsNonRoot":             {`{"containers": [{"name": "a", "securityContext": {"runAsNonRoot": false}}]}`, "want true or no field"},
	"initContainers.0.securityContext.privileged":           {`{"initContainers": [{"name": "i", "image": "x", "securityContext": {"privileged": true}}]}`, "want false or no field"},
	"initContainers.1.ports.0.hostPort":                     {`{"initContainers": [{"name": "i", "image": "x"}, {"name": "j", "image": "x", "ports": [{"containerPort": 1, "hostPort": 1}]}]}`, node},
	"initContainers.0.envFrom":                              {`+{"initContainers": [{"name": "i", "image": "x", "envFrom": [{"secretRef": {"name": "others"}}]}]}`, secret},
}

// TestDangerousFieldsAreRefused checks each field in a job, in the defaults of a pool, and when
// a pod is built from the stored record of a job.
func TestDangerousFieldsAreRefused(t *testing.T) {
	t.Parallel()
	for field, row := range dangers {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			text, permitted := strings.CutPrefix(row.document, "+")
			document := json.RawMessage(text)
			only(t, CheckPodSpec(document), "podSpec."+field, row.says)
			if got := CheckPodDefaults(document); permitted && len(got) > 0 {
				t.Errorf("pool: got %v, want the operator's choice", got)
			} else if !permitted {
				only(t, got, "settings.podDefaults."+field, "")
			}
			spec := example()
			spec.PodSpec = document
			if _, err := podSpec(nil, spec, "the-secret"); err == nil || !strings.Contains(err.Error(), "podSpec."+field+": ") {
				t.Errorf("launch: got error %v, want one of podSpec.%s", err, field)
			}
			spec = example()
			spec.Settings = &platform.KubernetesSettings{PodDefaults: document}
			if _, err := podSpec(nil, spec, "the-secret"); (err == nil) != permitted {
				t.Errorf("launch in the pool: got error %v, want one: %v", err, !permitted)
			}
		})
	}
}

// only fails the test unless there is one fault, about the field.
func only(t *testing.T, got []*fault.Fault, field, says string) {
	t.Helper()
	if len(got) != 1 || got[0].Field != field || got[0].Code != fault.Unprocessable || !strings.Contains(got[0].Message, says) {
		t.Errorf("got %v, want one fault of %s: %s", got, field, says)
	}
}

// TestVolumesOfOtherKindsAreRefused ranges over the sources of volumes of the API.
func TestVolumesOfOtherKindsAreRefused(t *testing.T) {
	t.Parallel()
	permitted := []string{"downwardAPI", "emptyDir", "ephemeral", "image", "projected"}
	for field := range reflect.TypeFor[corev1.VolumeSource]().Fields() {
		name, _ := jsonName(field)
		document := fmt.Sprintf(`{"volumes": [{"name": "v", %q: {}}]}`, name)
		if got := CheckPodSpec(json.RawMessage(document)); (len(got) == 0) != slices.Contains(permitted, name) {
			t.Errorf("%s: got %v, want faults: %v", name, got, !slices.Contains(permitted, name))
		}
	}
}

// TestPodsConformToTheStandard builds pods with fields that jobs can set.
func TestPodsConformToTheStandard(t *testing.T) {
	t.Parallel()
	for _, document := range []string{
		``, `{}`, `{"containers": [{"name": "a"}]}`, `{"volumes": [{"name": "a"}]}`,
		`{"securityContext": {"runAsUser": 1000, "fsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"}}}`,
		`{"hostNetwork": false, "os": {"name": "linux"}, "hostPID": false, "securityContext": {}, "containers": [{"name": "a", "securityContext": {}}]}`,
		`{"containers": [{"name": "a", "securityContext": {"privileged": false, "capabilities": {"add": ["NET_BIND_SERVICE"]}, "procMount": "Default"}}]}`,
		`{"initContainers": [{"name": "proxy", "image": "p", "restartPolicy": "Always"}], "priorityClassName": "low"}`,
		`{"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}], "nodeSelector": {"disk": "ssd"}}`,
		`{"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}}],
			"containers": [{"name": "a", "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": true}], "resources": {"limits": {"example.org/gpu": "1"}}}]}`,
	} {
		spec := example()
		spec.PodSpec = json.RawMessage(document)
		pod, err := podSpec(nil, spec, "the-secret")
		if err != nil {
			t.Errorf("%s: got error %v, want a pod", document, err)
		} else if err := unrestricted(&pod); err != nil {
			t.Errorf("%s: %v", document, err)
		}
	}
}

// TestBuiltPodIsChecked checks that the merged pod conforms, as its layers do.
func TestBuiltPodIsChecked(t *testing.T) {
	t.Parallel()
	if _, err := podSpec(json.RawMessage(`{"hostNetwork": true}`), example(), "the-secret"); err == nil || !strings.Contains(err.Error(), "restricted: host namespaces (hostNetwork=true)") {
		t.Errorf("got error %v, want the standard's words", err)
	}
}

// TestFieldsOfPods compares every field of the API's pod specifications, and who can set it,
// with a file. A field of a new version of the API is refused, and fails the test until the
// file lists it.
func TestFieldsOfPods(t *testing.T) {
	t.Parallel()
	var lines []string
	list(reflect.TypeFor[corev1.PodSpec](), "", func(path, who string) { lines = append(lines, fmt.Sprintf("%-7s %s\n", who, path)) })
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[8:], b[8:]) })
	got := strings.Join(lines, "")
	const golden = "testdata/fields.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil { //nolint:gosec // G306: a file of the repository
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-%s +got, \"-update\" writes it:\n%s", golden, diff)
	}
	for who, fields := range fieldsOf {
		for _, field := range fields {
			if !strings.Contains(got, " "+field+"\n") {
				t.Errorf("%v: %s is no field of the API", author(who), field)
			}
		}
	}
	for field := range rules {
		if whole, _ := authorPool.supports(field); !whole {
			t.Errorf("rule of %s, which is no field of fieldsOf", field)
		}
	}
}

// list reports each field of a type that is permitted or refused as a whole.
func list(typ reflect.Type, path string, report func(path, who string)) {
	if path != "" {
		byJob, someByJob := authorJob.supports(path)
		byPool, some := authorPool.supports(path)
		switch {
		case byJob:
			report(path, "job")
			return
		case byPool:
			report(path, "pool")
			return
		case !some && !someByJob:
			report(path, "refused")
			return
		}
	}
	switch typ.Kind() {
	case reflect.Pointer:
		list(typ.Elem(), path, report)
	case reflect.Slice:
		if path != "initContainers" {
			list(typ.Elem(), entryOf(path), report)
		}
	case reflect.Struct:
		for field := range typ.Fields() {
			name, inline := jsonName(field)
			if inline {
				list(field.Type, path, report)
				continue
			}
			list(field.Type, strings.TrimPrefix(path+"."+name, "."), report)
		}
	default:
	}
}
