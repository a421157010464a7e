package worker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/base/limit"
)

func goodEnv() map[string]string {
	return map[string]string{
		"TASK_ID": "export_mods_1704857234567_a3f8c2d1", "PI": testPI(0), "R2_ACCOUNT_ID": "acc", "R2_ACCESS_KEY_ID": "key",
		"R2_SECRET_ACCESS_KEY": "s3cr3t", "CALLBACK_URL": "https://sortie.example/callback/x?token=t0k3n",
		"SOURCE_API_URL": "http://127.0.0.1:9000/api/",
	}
}

func environ(vars map[string]string) []string {
	var list []string
	for name, value := range vars {
		list = append(list, name+"="+value)
	}
	return list
}

func TestConfigDefaults(t *testing.T) {
	t.Parallel()
	c, err := ParseConfig(environ(goodEnv()))
	if err != nil {
		t.Fatal(err)
	}
	if c.BatchID != "single" || c.Format != "mods" || c.Bucket.Bucket != "arke-exports" || c.SourceURL != "http://127.0.0.1:9000/api" {
		t.Errorf("got config %+v, want the defaults", c)
	}
	if diff := cmp.Diff(DefaultOptions(), c.Options); diff != "" {
		t.Error(diff)
	}
	if want := "exports/export_mods_1704857234567_a3f8c2d1/" + testPI(0) + ".xml"; c.Key() != want {
		t.Errorf("got key %q, want %q", c.Key(), want)
	}
	c.Options.Recursive = true
	if want := testPI(0) + "-collection.xml"; c.FileName() != want {
		t.Errorf("got file name %q, want %q", c.FileName(), want)
	}
}

func TestConfigNamesEveryProblemAtOnce(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		set  map[string]string
		want []string
	}{
		{"nothing set", map[string]string{
			"TASK_ID": "", "PI": "", "R2_ACCOUNT_ID": "", "R2_ACCESS_KEY_ID": "", "R2_SECRET_ACCESS_KEY": "", "CALLBACK_URL": "", "SOURCE_API_URL": "",
		}, []string{"missing TASK_ID", "missing PI", "missing R2_ACCOUNT_ID", "missing R2_ACCESS_KEY_ID", "missing R2_SECRET_ACCESS_KEY", "missing CALLBACK_URL", "missing SOURCE_API_URL"}},
		{"an endpoint needs no account", map[string]string{"R2_ACCOUNT_ID": "", "R2_ENDPOINT": "http://127.0.0.1:1"}, nil},
		{"all wrong", map[string]string{
			"TASK_ID": "../up", "PI": "01k9", "EXPORT_FORMAT": "pdf", "EXPORT_OPTIONS": `{"maxDepth":-1}`, "R2_ENDPOINT": "ftp://x",
			"CALLBACK_URL": "nowhere", "SOURCE_API_URL": "http://u:p@host?x",
		}, []string{"malformed TASK_ID", "malformed PI", "EXPORT_FORMAT: want one of " + strings.Join(FormatNames(), ", "), "maxDepth must", "R2_ENDPOINT", "CALLBACK_URL", "SOURCE_API_URL"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			env := goodEnv()
			maps.Copy(env, row.set)
			_, err := ParseConfig(environ(env))
			if row.want == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil {
				t.Fatalf("got no error, want %q", row.want)
			}
			if lines := strings.Split(err.Error(), "\n"); len(lines) != len(row.want) {
				t.Errorf("got %d problems, want %d: %v", len(lines), len(row.want), lines)
			}
			for _, want := range row.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
			for _, secret := range []string{"s3cr3t", "t0k3n", "u:p"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("got a secret in the error: %v, want it masked", err)
				}
			}
		})
	}
}

// TestEnvelopeReplacesCallbackAndBucket checks that an envelope with an upload URL replaces the
// variables of the callback and of the bucket.
func TestEnvelopeReplacesCallbackAndBucket(t *testing.T) {
	t.Parallel()
	const envelope = `{"taskId":"t1","attempt":1,"callbackBaseUrl":"http://c.test","taskToken":"t0k3n"`
	for text, want := range map[string]string{
		envelope + `,"output":{"url":"http://b.test/?t0k3n"}}`: "",
		envelope + `}`: "missing R2_ACCESS_KEY_ID\nmissing R2_SECRET_ACCESS_KEY\nmissing R2_ACCOUNT_ID",
		`{"taskToken":"t0k3n"`: "invalid TASK_ENVELOPE: not JSON at byte 20\nmissing TASK_ID\n" +
			"missing R2_ACCESS_KEY_ID\nmissing R2_SECRET_ACCESS_KEY\nmissing R2_ACCOUNT_ID\nmissing CALLBACK_URL",
	} {
		c, err := ParseConfig([]string{"TASK_ENVELOPE=" + text, "PI=" + testPI(0), "SOURCE_API_URL=http://s.test"})
		switch {
		case want == "" && (err != nil || c.TaskID != "t1" || c.Envelope == nil):
			t.Errorf("%s: got %v, want %q", text, err, want)
		case want != "" && (err == nil || err.Error() != want):
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestParseOptions(t *testing.T) {
	t.Parallel()
	all := Options{Recursive: true, MaxDepth: 0, ParallelBatchSize: 100, IncludeOCR: false, CheimarrosMode: "skip"}
	for _, row := range []struct {
		name, text string
		want       Options
		wrong      []string
	}{
		{name: "empty", text: "", want: DefaultOptions()},
		{name: "no members", text: "{}", want: DefaultOptions()},
		{name: "nulls are defaults", text: `{"maxDepth":null,"includeOcr":null}`, want: DefaultOptions()},
		{name: "all", text: `{"recursive":true,"maxDepth":0,"parallelBatchSize":100,"includeOcr":false,"cheimarrosMode":"skip"}`, want: all},
		{name: "no object", text: `[1]`, wrong: []string{"not a JSON object"}},
		{name: "null", text: `null`, wrong: []string{"not a JSON object"}},
		{name: "two objects", text: `{} {}`, wrong: []string{"not one JSON object"}},
		{name: "unknown", text: `{"validate":true,"MaxDepth":3}`, wrong: []string{"validate is unknown", "MaxDepth is unknown"}},
		{
			name: "greatest", text: fmt.Sprintf(`{"maxDepth":%d,"parallelBatchSize":%d}`, limit.ExportDepth, limit.ExportBatch),
			want: Options{MaxDepth: limit.ExportDepth, ParallelBatchSize: limit.ExportBatch, IncludeOCR: true, CheimarrosMode: "full"},
		},
		{
			name: "out of range", text: fmt.Sprintf(`{"maxDepth":%d,"parallelBatchSize":%d}`, limit.ExportDepth+1, limit.ExportBatch+1),
			wrong: []string{"maxDepth must be a whole number from 0 to 100", "parallelBatchSize must be a whole number from 1 to 100"},
		},
		{
			name: "wrong types", text: `{"recursive":"yes","maxDepth":1.5,"parallelBatchSize":0,"includeOcr":1,"cheimarrosMode":"most"}`,
			wrong: []string{"recursive must", "maxDepth must", "parallelBatchSize must", "includeOcr must", "cheimarrosMode must"},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseOptions(row.text)
			for _, want := range row.wrong {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
			if len(row.wrong) == 0 {
				if diff := cmp.Diff(row.want, got); err != nil || diff != "" {
					t.Error(err, diff)
				}
			}
		})
	}
}

func TestFormatNames(t *testing.T) {
	t.Parallel()
	if got, want := FormatNames(), slices.Sorted(slices.Values(limit.Formats())); !slices.Equal(got, want) {
		t.Errorf("got %q, want what the API accepts, %q", got, want)
	}
}
