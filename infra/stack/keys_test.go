package stack_test

import (
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/infra/stack"
)

// TestOutputsKeysOverlap checks the three deployments of a rotation: the old keys exist until
// the last deployment.
func TestOutputsKeysOverlap(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		keys string
		// used is the key in the secret. The others are valid too.
		used, others string
	}{
		{"1", "OutputsUserKey", ""},
		{"1,2", "OutputsUserKey", "OutputsUserKey2"},
		{"2,1", "OutputsUserKey2", "OutputsUserKey"},
		{"2", "OutputsUserKey2", ""},
	} {
		t.Run(row.keys, func(t *testing.T) {
			t.Parallel()
			made := synth(t, map[string]any{"outputs": "s3", "outputsKeys": row.keys})
			secret := named(t, made, "SecretsManager::Secret", "SecretOutputs").Text("SecretString")
			want := []string{row.used}
			if row.others != "" {
				want = append(want, row.others)
			}
			for _, id := range want {
				for _, key := range []string{id, strings.Replace(id, "Outputs", "Worker", 1)} {
					if made.Resources[key] == nil {
						t.Errorf("got no access key %s", key)
					}
					if used := strings.Contains(secret, "${"+key+".SecretAccessKey}"); used != (id == row.used) {
						t.Errorf("%s: got used=%t in the secret %s", key, used, secret)
					}
				}
			}
			if n := len(made.Of("IAM::AccessKey")); n != 2*len(want) {
				t.Errorf("got %d access keys, want %d", n, 2*len(want))
			}
		})
	}
	for _, keys := range []string{"1,2,3", "a-b"} {
		if _, err := stack.ReadSettings(given(map[string]any{"outputsKeys": keys})); err == nil || !strings.Contains(err.Error(), "outputsKeys: ") {
			t.Errorf("%s: got %v, want a problem of outputsKeys", keys, err)
		}
	}
}
