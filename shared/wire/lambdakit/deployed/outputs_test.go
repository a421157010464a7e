package deployed_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// TestRule14WorkerGetsItsOwnKeys checks that the keys of a worker are for the bucket for
// uploads and never for the accepted bucket.
func TestRule14WorkerGetsItsOwnKeys(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(secrets.Outputs{
		AccountID: "account", AccessKeyID: "ours", SecretAccessKey: "our secret",
		WorkerAccessKeyID: "theirs", WorkerSecretAccessKey: "their secret",
	})
	if err != nil {
		t.Fatal(err)
	}
	aws := awstest.Serve(t, map[string]awstest.Call{"GetSecretValue": func(json.RawMessage) (any, error) {
		return map[string]string{"SecretString": string(text)}, nil
	}})
	env := map[string]string{
		"SORTIE_STAGE": "test", "SORTIE_UPLOADS_BUCKET": "uploads", "SORTIE_ACCEPTED_BUCKET": "accepted",
		"SORTIE_SECRET_OUTPUTS": "sortie/test/outputs", "AWS_REGION": aws.Region, "AWS_ENDPOINT_URL": *aws.BaseEndpoint,
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
	}
	var out bytes.Buffer
	_, worker := deployed.Outputs(process.New("launch", process.Host{
		Env: func(name string) (string, bool) { value, ok := env[name]; return value, ok },
		Out: &out, Err: &out, Clock: clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		Exit: func(code int) { t.Errorf("got exit code %d: %s", code, &out) },
	}))
	got, err := worker(t.Context())
	want := grants.WorkerBucket{AccountID: "account", Bucket: "uploads", AccessKeyID: "theirs", SecretAccessKey: "their secret"}
	if err != nil || got != want {
		t.Errorf("got bucket %q with key %q (%v), want uploads with the worker's key: %s", got.Bucket, got.AccessKeyID, err, &out)
	}
}
