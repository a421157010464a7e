package deployed_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/proof/port/otlptest"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestRelayExportsTraces sends a recorded event of the table's stream to the built relay. The
// relay exports the spans, with the headers of the secret, before it answers. A collector that
// fails only delays the answer, within a limit.
func TestRelayExportsTraces(t *testing.T) {
	t.Parallel()
	event, err := os.ReadFile("../testdata/v1/events/stream.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, fails := range map[string]int{"collector": 0, "collector that fails": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			receiver := otlptest.New(t)
			receiver.Fail(fails)
			aws := httptest.NewServer(platform(t))
			t.Cleanup(aws.Close)
			var requests []*http.Request
			var spans otlptest.Spans
			made := serve(t, "relay", string(event), []string{
				"SORTIE_STAGE=dev", "SORTIE_PUBLIC_URL=https://sortie.example.org", "SORTIE_TABLE=t", "SORTIE_BUS=b", "SORTIE_DELIVERIES=https://sqs.eu-central-1.amazonaws.com/1/q", "SORTIE_KEYS=k", "SORTIE_EVENT_SEED=" + secrets.SeedName("dev"), "SORTIE_SECRET_TRACES=" + secrets.Name("dev", "traces"),
				"OTEL_EXPORTER_OTLP_ENDPOINT=" + receiver.URL, "AWS_ENDPOINT_URL=" + aws.URL,
			}, func() { requests, spans = receiver.Requests(), receiver.Spans() })
			if made.answer != `{"batchItemFailures":[]}` || len(requests) != 1 || requests[0].Header.Get("Api-Key") != "from-the-secret" {
				t.Fatalf("got answer %s and %d requests, want one with the header before the answer; log: %s", made.answer, len(requests), made.logs)
			}
			if fails > 0 {
				return
			}
			if len(spans) != 1 || spans[0].GetEvents()[0].GetName() != string(run.EventAccepted) || fmt.Sprint(receiver.Service()["deployment.environment.name"]) != "dev" {
				t.Errorf("got %v of %v, want the request that was accepted on dev", spans, receiver.Service())
			}
		})
	}
}

// platform serves the APIs that the relay calls: the table t, the key k, the bus and the
// secrets.
func platform(t *testing.T) http.HandlerFunc {
	t.Helper()
	db := awsfake.NewDynamoDB(awsfake.DynamoDBConfig{Clock: clock.System{}}).AWS()
	if err := awsfake.CreateTable(t.Context(), db, "t"); err != nil {
		t.Fatal(err)
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var answer string
		switch target := r.Header.Get("X-Amz-Target"); target {
		case "AWSEvents.PutEvents":
			answer = `{"FailedEntryCount":0,"Entries":[{"EventId":"1"}]}`
		case "secretsmanager.GetSecretValue":
			answer = `{"SecretString":"{\"headers\":{\"api-key\":\"from-the-secret\"}}"}`
		case "AmazonSSM.GetParameter":
			answer = `{"Parameter":{"Value":"{\"seed\":\"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGH\"}"}}`
		case "TrentService.GetPublicKey":
			answer = fmt.Sprintf(`{"KeyId":"k","KeySpec":"ECC_NIST_P256","KeyUsage":"SIGN_VERIFY","PublicKey":%q}`, base64.StdEncoding.EncodeToString(public))
		case "TrentService.Sign":
			var asked struct{ Message []byte }
			_ = json.Unmarshal(body, &asked)
			signature, _ := ecdsa.SignASN1(rand.Reader, private, asked.Message)
			answer = fmt.Sprintf(`{"KeyId":"k","Signature":%q}`, base64.StdEncoding.EncodeToString(signature))
		default:
			if !strings.HasPrefix(target, "DynamoDB_") {
				t.Errorf("got the call %s, want those of the table, the bus, the key and the secrets", target)
				return
			}
			call := r.Clone(r.Context())
			call.Body, call.RequestURI = io.NopCloser(bytes.NewReader(body)), ""
			made, err := db.HTTPClient.Do(call)
			if err != nil {
				t.Errorf("%s: %v", target, err)
				return
			}
			defer made.Body.Close() //nolint:errcheck // it is in memory
			maps.Copy(w.Header(), made.Header)
			w.WriteHeader(made.StatusCode)
			_, _ = io.Copy(w, made.Body)
			return
		}
		_, _ = io.WriteString(w, answer)
	}
}
