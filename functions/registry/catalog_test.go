package registry_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/sortie-dev/sortie/functions/registry"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

const models = "/v1/catalog/models"

// key returns the private key of a signer whose models the stage trusts, or another one.
func key(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(slices.Repeat([]byte{seed}, ed25519.SeedSize))
}

func catalogStage(t *testing.T) *apitest.Stage {
	t.Helper()
	public, _ := key(1).Public().(ed25519.PublicKey)
	trusted, err := catalog.ParseKey(base64.StdEncoding.EncodeToString(public))
	if err != nil {
		t.Fatal(err)
	}
	return apitest.New(t, apitest.NewParts(t), func(s *app.System) []httpkit.Route {
		return registry.CatalogRoutes(s.Models)
	}, func(s *apitest.Settings) { s.Service.ModelKeys = catalog.Keys{trusted} })
}

const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// signature returns the envelope of a statement about a digest.
func signature(t *testing.T, by ed25519.PrivateKey, digest string) string {
	t.Helper()
	payload := fmt.Sprintf(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"model","digest":{"sha256":"%s"}}],"predicateType":"x"}`, strings.TrimPrefix(digest, "sha256:"))
	e := dsse.Envelope{
		PayloadType: catalog.PayloadType, Payload: base64.StdEncoding.EncodeToString([]byte(payload)),
		Signatures: []dsse.Signature{{KeyID: "an id <of> the signer", Sig: base64.StdEncoding.EncodeToString(ed25519.Sign(by, dsse.PAE(catalog.PayloadType, []byte(payload))))}},
	}
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestModelIsCreatedChangedAndRemoved(t *testing.T) {
	t.Parallel()
	stage := catalogStage(t)
	const body = `{"id": "llama:8b", "source": "hf:meta/Llama", "engines": ["vllm", "llamacpp"], "context_tokens": 8192, "tags": ["a", "b"]}`
	m, header := apitest.Decoded[contract.Model](t, stage, "POST", models, body, 201)
	if m.State != "Active" || *m.Signed || m.Verified != nil || *m.Price.Output != 2000 || m.Price.Input != 0 || !slices.Equal(m.Workloads, []string{"completion"}) {
		t.Errorf("got %+v, want an active, unsigned model with the defaults", m)
	}
	at := models + "/llama:8b"
	if header.Get("Location") != at {
		t.Errorf("got Location %q, want %s", header.Get("Location"), at)
	}
	again, _ := apitest.Decoded[contract.Model](t, stage, "POST", models, body, 200)
	if diff := cmp.Diff(m, again); diff != "" {
		t.Errorf("the same model: want -, got +\n%s", diff)
	}
	if p, _ := apitest.Decoded[contract.Problem](t, stage, "POST", models, `{"id": "llama:8b", "engines": ["vllm"]}`, 409); p.Code != "MODEL_EXISTS" {
		t.Errorf("got %+v, want MODEL_EXISTS", p)
	}
	tag := header.Get("ETag")
	patched, changed := apitest.Decoded[contract.Model](t, stage, "PATCH", at, `{"source": null, "tags": ["b"], "price": {"input_nanodollars": 100, "cached_nanodollars": 10}}`, 200, "If-Match", tag)
	if patched.Source != "" || patched.ContextTokens != 8192 || patched.Price.Input != 100 || *patched.Price.Cached != 10 || *patched.Price.Output != 2000 || !slices.Equal(patched.Tags, []string{"b"}) {
		t.Errorf("got %+v, want the patched fields and no other", patched)
	}
	for _, change := range [][2]string{{"PATCH", at}, {"DELETE", at}, {"POST", at + "/state"}, {"POST", at + "/verify"}} {
		body := map[string]string{"PATCH " + at: `{}`, "POST " + at + "/state": `{"state": "Active"}`}[change[0]+" "+change[1]]
		apitest.Decoded[contract.Problem](t, stage, change[0], change[1], body, 412, "If-Match", tag)
	}
	if got, read := apitest.Decoded[contract.Model](t, stage, "GET", at, "", 200); cmp.Diff(got, patched) != "" || read.Get("ETag") != changed.Get("ETag") {
		t.Errorf("got %+v, want %+v", got, patched)
	}
	apitest.Decoded[any](t, stage, "DELETE", at, "", 204)
	for _, call := range [][3]string{{"GET", at}, {"PATCH", at, `{}`}, {"DELETE", at}, {"POST", at + "/state", `{"state": "Active"}`}, {"POST", at + "/verify"}, {"GET", models + "/-"}} {
		if p, _ := apitest.Decoded[contract.Problem](t, stage, call[0], call[1], call[2], 404); p.Code != "MODEL_UNKNOWN" {
			t.Errorf("%v: got %+v, want MODEL_UNKNOWN", call, p)
		}
	}
}

func TestChangesOfAModelAreEvents(t *testing.T) {
	t.Parallel()
	stage := catalogStage(t)
	apitest.Decoded[contract.Model](t, stage, "POST", models, `{"id": "m", "engines": ["vllm"]}`, 201)
	apitest.Decoded[contract.Model](t, stage, "POST", models+"/m/state", `{"state": "Retired"}`, 200)
	apitest.Decoded[contract.Model](t, stage, "POST", models+"/m/state", `{"state": "Retired"}`, 200) // changes nothing
	apitest.Decoded[any](t, stage, "DELETE", models+"/m", "", 204)
	got, last := stage.Notes(t), ""
	if len(got) != 3 {
		t.Fatalf("got %d events, want 3", len(got))
	}
	for i, e := range got {
		if p := e.Policy; p.Resource != "model" || p.ID != "m" || p.Before != last || (p.After == "") != (i == 2) || p.Before == p.After {
			t.Errorf("got event %d with %+v, want a change of the model from %q", i, p, last)
		}
		last = e.Policy.After
	}
}

func TestStrictPolicyRequiresATrustedSignature(t *testing.T) {
	t.Parallel()
	stage := catalogStage(t)
	strict := []string{"X-Trust-Policy", "strict"}
	definition := func(id, signature string) string {
		return `{"id": "` + id + `", "engines": ["vllm"], "digest": "` + digest + `"` + signature + `}`
	}
	signed := func(by byte, digest string) string { return `, "signature": ` + signature(t, key(by), digest) }
	other := strings.Replace(digest, ":a", ":b", 1)
	for name, given := range map[string]string{
		"none": "", "unsigned": `, "signed": false`, "stranger": signed(2, digest), "other": signed(1, other),
		"forged": strings.Replace(signed(1, digest), `"sig":"`, `"sig":"AAAA`, 1),
	} {
		if p, _ := apitest.Decoded[contract.Problem](t, stage, "POST", models, definition(name, given), 400, strict...); p.Code != "UNTRUSTED_ARTIFACT" {
			t.Errorf("%s: got %+v, want UNTRUSTED_ARTIFACT", name, p)
		}
		apitest.Decoded[contract.Problem](t, stage, "GET", models+"/"+name, "", 404)
		m, _ := apitest.Decoded[contract.Model](t, stage, "POST", models, definition(name, given), 201)
		if m.Verified != nil || *m.Signed != strings.Contains(given, "signature") {
			t.Errorf("%s: got signed %t and verified %+v without the policy", name, *m.Signed, m.Verified)
		}
		checkUntrusted(t, stage, name, strict)
	}
	m, _ := apitest.Decoded[contract.Model](t, stage, "POST", models, definition("good", `, "signed": true`+signed(1, digest)), 201, strict...)
	if m.Verified == nil || m.Verified.AtMS != apitest.Began.UnixMilli() || !strings.HasPrefix(m.Verified.Key, "model-") || !*m.Signed {
		t.Errorf("got verified %+v, want the key and the time", m.Verified)
	}
	if result, _ := apitest.Decoded[contract.ModelVerification](t, stage, "POST", models+"/good/verify", "", 200, strict...); !result.Trusted || result.Reason != "" {
		t.Errorf("got %+v, want a trusted model", result)
	}
	if _, err := stage.System.Models.Admit(t.Context(), apitest.Tenant, "good", true); err != nil {
		t.Errorf("got %v, want the model admitted", err)
	}
	if m, _ := apitest.Decoded[contract.Model](t, stage, "PATCH", models+"/good", `{"digest": "`+other+`"}`, 200); m.Verified != nil {
		t.Errorf("got verified %+v of another digest, want none", m.Verified)
	}
	if p, _ := apitest.Decoded[contract.Problem](t, stage, "POST", models, definition("x", ""), 400, "X-Trust-Policy", "lax"); p.Field != "X-Trust-Policy" {
		t.Errorf("got %+v, want a fault of the header", p)
	}
}

// checkUntrusted verifies a model without a trusted signature.
func checkUntrusted(t *testing.T, stage *apitest.Stage, id string, strict []string) {
	t.Helper()
	if result, _ := apitest.Decoded[contract.ModelVerification](t, stage, "POST", models+"/"+id+"/verify", "", 200); result.Trusted || result.Reason == "" {
		t.Errorf("%s: got %+v, want it untrusted with a reason", id, result)
	}
	apitest.Decoded[contract.Problem](t, stage, "POST", models+"/"+id+"/verify", "", 400, strict...)
	apitest.Decoded[contract.Problem](t, stage, "PATCH", models+"/"+id, `{"tags": ["x"]}`, 400, strict...)
	if _, err := stage.System.Models.Admit(t.Context(), apitest.Tenant, id, true); !fault.Is(err, fault.UntrustedArtifact) {
		t.Errorf("%s: got %v, want UntrustedArtifact", id, err)
	}
	if _, err := stage.System.Models.Admit(t.Context(), apitest.Tenant, id, false); err != nil {
		t.Errorf("%s: got %v without the policy, want the model", id, err)
	}
}

func TestRetiredModelIsNotAdmitted(t *testing.T) {
	t.Parallel()
	stage := catalogStage(t)
	apitest.Decoded[contract.Model](t, stage, "POST", models, `{"id": "m", "engines": ["vllm"]}`, 201)
	admit := func(id string) error {
		_, err := stage.System.Models.Admit(t.Context(), apitest.Tenant, id, false)
		return err
	}
	for _, state := range []string{"Retired", "Active"} {
		if m, _ := apitest.Decoded[contract.Model](t, stage, "POST", models+"/m/state", `{"state": "`+state+`"}`, 200); m.State != state {
			t.Errorf("got state %s, want %s", m.State, state)
		}
		if err := admit("m"); (err == nil) != (state == "Active") || err != nil && !fault.Is(err, fault.PoolUnavailable) {
			t.Errorf("%s: got %v", state, err)
		}
	}
	for _, body := range []string{`{}`, `{"state": "active"}`, `{"state": "Deleted"}`} {
		if p, _ := apitest.Decoded[contract.Problem](t, stage, "POST", models+"/m/state", body, 400); p.Field != "state" {
			t.Errorf("%s: got field %q, want state", body, p.Field)
		}
	}
	for _, id := range []string{"other", "", "a/b"} {
		if err := admit(id); !fault.Is(err, fault.ModelUnknown) {
			t.Errorf("%q: got %v, want ModelUnknown", id, err)
		}
	}
	if _, err := stage.System.Models.Admit(t.Context(), "another", "m", false); !fault.Is(err, fault.ModelUnknown) {
		t.Errorf("another tenant: got %v, want ModelUnknown", err)
	}
}

func TestMalformedModelNamesTheField(t *testing.T) {
	t.Parallel()
	stage := catalogStage(t)
	for body, field := range map[string]string{
		`{"engines": ["vllm"]}`:                                                                                "id",
		`{"id": "a/b", "engines": ["vllm"]}`:                                                                   "id",
		`{"id": "m"}`:                                                                                          "engines",
		`{"id": "m", "engines": ["gpt"]}`:                                                                      "engines.0",
		`{"id": "m", "engines": ["vllm", "vllm"]}`:                                                             "engines.1",
		`{"id": "m", "engines": ["vllm"], "workloads": []}`:                                                    "workloads",
		`{"id": "m", "engines": ["vllm"], "workloads": ["chat"]}`:                                              "workloads.0",
		`{"id": "m", "engines": ["vllm"], "digest": "sha256:1"}`:                                               "digest",
		`{"id": "m", "engines": ["vllm"], "source": "model.gguf"}`:                                             "source",
		`{"id": "m", "engines": ["vllm"], "source": "https://a:b@c.d/"}`:                                       "source",
		`{"id": "m", "engines": ["vllm"], "context_tokens": -1}`:                                               "context_tokens",
		`{"id": "m", "engines": ["vllm"], "price": {"input_nanodollars": -1}}`:                                 "price.input_nanodollars",
		`{"id": "m", "engines": ["vllm"], "price": {"output_nanodollars": 1000000001}}`:                        "price.output_nanodollars",
		`{"id": "m", "engines": ["vllm"], "price": {"cached_nanodollars": 1}}`:                                 "price.cached_nanodollars",
		`{"id": "m", "engines": ["vllm"], "price": {"input_nanodollars": 3, "cached_nanodollars": 4}}`:         "price.cached_nanodollars",
		`{"id": "m", "engines": ["vllm"], "tags": ["a b"]}`:                                                    "tags.0",
		`{"id": "m", "engines": ["vllm"], "signed": true}`:                                                     "signature",
		`{"id": "m", "engines": ["vllm"], "signature": {}}`:                                                    "signature",
		`{"id": "m", "engines": ["vllm"], "signature": "x"}`:                                                   "signature",
		`{"id": "m", "engines": ["vllm"], "state": "Active"}`:                                                  "state",
		`{"id": "m", "engines": ["vllm"], "signature": ` + signature(t, key(1), digest) + `}`:                  "digest",
		`{"id": "m", "engines": ["vllm"], "signed": false, "signature": ` + signature(t, key(1), digest) + `}`: "signed",
	} {
		if p, _ := apitest.Decoded[contract.Problem](t, stage, "POST", models, body, 400); p.Field != field {
			t.Errorf("%s: got field %q (%s), want %q", body, p.Field, p.Detail, field)
		}
	}
	for _, query := range []string{"engine=gpt", "tag=a+b", "state=active", "limit=0", "cursor=x"} {
		apitest.Decoded[contract.Problem](t, stage, "GET", models+"?"+query, "", 400)
	}
}

func TestModelsAreListedByEngineTagAndState(t *testing.T) {
	t.Parallel()
	stage := catalogStage(t)
	for _, body := range []string{
		`{"id": "a", "engines": ["vllm"], "tags": ["x"]}`, `{"id": "b", "engines": ["vllm", "tgi"]}`, `{"id": "c", "engines": ["tgi"], "tags": ["x", "y"]}`,
	} {
		apitest.Decoded[contract.Model](t, stage, "POST", models, body, 201)
		stage.Clock.Advance(1e9)
	}
	apitest.Decoded[contract.Model](t, stage, "POST", models+"/c/state", `{"state": "Retired"}`, 200)
	apitest.Decoded[contract.Model](t, stage, "PATCH", models+"/c", `{"tags": ["y"]}`, 200)
	for query, want := range map[string]string{
		"": "c b a", "engine=vllm": "b a", "engine=tgi&tag=y": "c", "tag=x": "a", "state=Active": "b a", "state=Retired": "c", "limit=1": "c", "engine=mock": "",
	} {
		list, _ := apitest.Decoded[contract.ModelList](t, stage, "GET", models+"?"+query, "", 200)
		var got []string
		for _, m := range list.Models {
			got = append(got, m.ID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", query, got, want)
		}
	}
}
