package runs_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/app/setting"
	"github.com/sortie-dev/sortie/shared/base/setting"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestMachineEnvironmentOfAnExport checks the variables of EC-10.
func TestMachineEnvironmentOfAnExport(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.bucket = grants.WorkerBucket{AccountID: "account", AccessKeyID: "key", SecretAccessKey: "secret", Bucket: "arke-exports"}
	for request, batch := range map[*contract.ExportRequest]string{
		{PI: "01K9XVBAQZF9EHDRXGBEADTZYY", Options: &contract.ExportOptions{MaxDepth: new(7)}}: "single",
		{PI: "01K9XVBAQZF9EHDRXGBEADTZYY", BatchID: new("batch-1")}:                            "batch-1",
	} {
		r, _, err := h.service.Export(t.Context(), export{Format: "mods", Request: *request})
		h.ok(err)
		h.step()
		env := h.runner.last().spec.Env
		for name, want := range map[string]string{
			"TASK_ID": r.TaskID, "BATCH_ID": batch, "PI": request.PI, "EXPORT_FORMAT": "mods", "R2_ACCOUNT_ID": "account",
			"R2_ACCESS_KEY_ID": "key", "R2_SECRET_ACCESS_KEY": "secret", "R2_BUCKET": "arke-exports",
		} {
			if env[name] != want {
				t.Errorf("got %s=%q, want %q", name, env[name], want)
			}
		}
		for _, name := range []string{"R2_ENDPOINT", "R2_REGION"} {
			if value, ok := env[name]; ok {
				t.Errorf("got %s=%q, want it absent for R2", name, value)
			}
		}
		if want := h.config.PublicURL + "/callback/" + r.TaskID; !strings.HasPrefix(env["CALLBACK_URL"], want) {
			t.Errorf("got CALLBACK_URL=%q, want it to begin with %s", env["CALLBACK_URL"], want)
		}
		var options contract.ExportOptions
		if err := json.Unmarshal([]byte(env["EXPORT_OPTIONS"]), &options); err != nil {
			t.Errorf("got EXPORT_OPTIONS=%q, want a JSON object: %v", env["EXPORT_OPTIONS"], err)
		}
		if want := request.Options; want != nil && (options.MaxDepth == nil || *options.MaxDepth != *want.MaxDepth) {
			t.Errorf("got EXPORT_OPTIONS=%q, want maxDepth %d", env["EXPORT_OPTIONS"], *want.MaxDepth)
		}
	}
}

func TestWorkerGetsPresignedURLsAlone(t *testing.T) {
	t.Parallel()
	h := setup(t, func(c *runs.Config) { c.BucketCredentials = spec.BucketEnvelope })
	h.bucket = grants.WorkerBucket{AccountID: "account", AccessKeyID: "key", SecretAccessKey: "secret", Bucket: "arke-exports", Endpoint: "http://s3", Region: "r"}
	_, err := h.exportWith(contract.Policy{})
	h.ok(err)
	h.step()
	env := h.runner.last().spec.Env
	for name, value := range env {
		if strings.HasPrefix(name, "R2_") {
			t.Errorf("got %s=%q, want no variable of the bucket", name, value)
		}
	}
	var e contract.TaskEnvelope
	h.ok(json.Unmarshal([]byte(env[contract.EnvelopeVariable]), &e))
	if e.Output == nil || e.Output.URL == "" || e.Log == nil {
		t.Errorf("got the envelope %+v, want URLs for output and log", e)
	}
}

// A program gets the keys if its job asks for them and the deployment has them.
func TestJobDecidesAboutTheBucketKeys(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		deployment, asked string
		export, keys      bool
	}{
		"a program":                         {spec.BucketVariables, "", false, false},
		"a program with keys":               {spec.BucketVariables, spec.BucketVariables, false, true},
		"a program with keys by default":    {"", spec.BucketVariables, false, true},
		"a deployment without keys":         {spec.BucketEnvelope, spec.BucketVariables, false, false},
		"an export":                         {spec.BucketVariables, "", true, true},
		"an export of a job without keys":   {spec.BucketVariables, spec.BucketEnvelope, true, false},
		"an export without keys by default": {spec.BucketEnvelope, "", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t, func(c *runs.Config) { c.BucketCredentials = row.deployment })
			h.bucket = grants.WorkerBucket{AccountID: "account", AccessKeyID: "key", SecretAccessKey: "secret", Bucket: "arke-exports", Endpoint: "http://s3"}
			task := h.accept()
			if !row.export {
				h.program(task, spec.Program{})
			}
			r := h.record(task)
			r.Work.BucketCredentials = row.asked
			h.ok(h.store.Commit(h.Context(), port.Write{Run: r}))
			h.step()
			env := h.runner.last().spec.Env
			if got := env["R2_SECRET_ACCESS_KEY"] == "secret" && env["R2_ENDPOINT"] == "http://s3"; got != row.keys {
				t.Errorf("got the keys: %t in %v, want %t", got, env, row.keys)
			}
		})
	}
}

// TestLaunchFollowsTheDefinition compares the settings of a new machine with the job file.
func TestLaunchFollowsTheDefinition(t *testing.T) {
	t.Parallel()
	h := setup(t)
	d, problems := job.Parse([]byte(`
id: sized
image: app
command: [--all]
region: fra
resources: {cpus: 3, memoryMB: 768}
constraints: {maxAllowedRunTime: 7m}
policy: {heartbeatIntervalSeconds: 11, heartbeatTimeoutSeconds: 44, cancelGraceSeconds: 13, startTimeoutSeconds: 77}
`), &job.Deployment{Policy: h.config.Policy})
	if problems != nil {
		t.Fatal(problems)
	}
	task := h.accept()
	r, of := h.record(task), d.Run(h.config.Policy)
	r.Work, r.Policy = of.Work, of.Policy
	h.ok(h.store.Commit(h.Context(), port.Write{Run: r}))
	h.step()
	spec := h.runner.last().spec
	if spec.Region != "fra" || spec.CPUs != 3 || spec.MemoryMB != 768 || spec.StopGrace != 13*time.Second || spec.Image != "app" || !slices.Equal(spec.Command, []string{"--all"}) {
		t.Errorf("got %s %v in %s with %d CPUs, %d MB and a grace of %s, want those of the job", spec.Image, spec.Command, spec.Region, spec.CPUs, spec.MemoryMB, spec.StopGrace)
	}
	var e contract.TaskEnvelope
	h.ok(json.Unmarshal([]byte(spec.Env[contract.EnvelopeVariable]), &e))
	want := contract.Resources{CPUMillicores: 3000, MemoryBytes: 768 << 20, TimeoutMS: 420_000}
	if e.Resources != want || e.HeartbeatIntervalMS != 11_000 || e.HeartbeatTimeoutMS != 44_000 || e.CancelGracePeriodMS != 13_000 {
		t.Errorf("got envelope %+v, want resources %+v, heartbeats each 11 s within 44 s and a grace of 13 s", e, want)
	}
	if by := h.record(task).Attempt.StartBy.Sub(h.record(task).Attempt.IntentAt); by != 77*time.Second {
		t.Errorf("got a start limit of %s, want 77 s", by)
	}
}

// TestRegionIsSetForOtherStores checks EC-3.11.
func TestRegionIsSetForOtherStores(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ endpoint, region, want string }{
		"R2":                            {"", "", ""},
		"R2 with its region":            {"", "auto", ""},
		"R2 with an endpoint":           {"https://account.eu.r2.cloudflarestorage.com", "auto", ""},
		"another store":                 {"https://s3.eu-west-1.amazonaws.com", "eu-west-1", "eu-west-1"},
		"another store without regions": {"http://127.0.0.1:9000", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			h.bucket = grants.WorkerBucket{Endpoint: row.endpoint, Region: row.region}
			h.post()
			env := h.runner.last().spec.Env
			if env["R2_REGION"] != row.want || env["R2_ENDPOINT"] != row.endpoint {
				t.Errorf("got R2_REGION=%q and R2_ENDPOINT=%q, want %q and %q", env["R2_REGION"], env["R2_ENDPOINT"], row.want, row.endpoint)
			}
		})
	}
}

// TestTokenLifetimeIsLimited checks WC-2.4: neither the setting nor a long start
// limit makes a token valid for more than 7200 s.
func TestTokenLifetimeIsLimited(t *testing.T) {
	t.Parallel()
	if c, err := service.Read(setting.Map(map[string]string{"SORTIE_TOKEN_TTL": "7201s"})); err == nil {
		t.Errorf("got a token TTL of %s, want an error above 7200 s", c.TokenTTL)
	}
	h := setup(t)
	_, err := h.exportWith(contract.Policy{StartTimeoutSeconds: new(7200)})
	h.ok(err)
	h.step()
	var e contract.TaskEnvelope
	h.ok(json.Unmarshal([]byte(h.runner.last().spec.Env[contract.EnvelopeVariable]), &e))
	if got := e.TokenExpiresAt.Sub(h.clock.now); got > 2*time.Hour || got <= time.Hour {
		t.Errorf("got a token valid for %s, want more than 1h and at most 2h", got)
	}
}
