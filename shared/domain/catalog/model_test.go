package catalog_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

var digest = "sha256:" + strings.Repeat("a", 64)

// trusted returns the private key that is derived from seed, and its public half as a Key.
func trusted(t *testing.T, seed byte) (ed25519.PrivateKey, catalog.Key) {
	t.Helper()
	private := ed25519.NewKeyFromSeed(slices.Repeat([]byte{seed}, ed25519.SeedSize))
	public, _ := private.Public().(ed25519.PublicKey)
	key, err := catalog.ParseKey(base64.RawURLEncoding.EncodeToString(public))
	if err != nil {
		t.Fatal(err)
	}
	return private, key
}

// envelope returns a DSSE envelope of payload, signed by each key of by.
func envelope(t *testing.T, payloadType, payload string, by ...ed25519.PrivateKey) json.RawMessage {
	t.Helper()
	e := dsse.Envelope{PayloadType: payloadType, Payload: base64.StdEncoding.EncodeToString([]byte(payload)), Signatures: []dsse.Signature{}}
	for _, key := range by {
		e.Signatures = append(e.Signatures, dsse.Signature{KeyID: "other", Sig: base64.StdEncoding.EncodeToString(ed25519.Sign(key, dsse.PAE(payloadType, []byte(payload))))})
	}
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

const statement = `{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"a","digest":{"sha512":"0"}},{"name":"b","digest":{"sha256":"DIGEST"}}]}`

func TestSignatureIsOfATrustedKeyAboutTheDigest(t *testing.T) {
	t.Parallel()
	mine, key := trusted(t, 1)
	other, second := trusted(t, 2)
	about := strings.Replace(statement, "DIGEST", strings.Repeat("A", 64), 1)
	good := envelope(t, catalog.PayloadType, about, mine)
	for name, row := range map[string]struct {
		signature json.RawMessage
		digest    string
		keys      catalog.Keys
		key       string
	}{
		"trusted":             {good, digest, catalog.Keys{key}, key.ID()},
		"one of two keys":     {good, digest, catalog.Keys{second, key}, key.ID()},
		"one of two signers":  {envelope(t, catalog.PayloadType, about, other, mine), digest, catalog.Keys{key}, key.ID()},
		"unsigned":            {nil, digest, catalog.Keys{key}, ""},
		"no keys":             {good, digest, nil, ""},
		"another key":         {good, digest, catalog.Keys{second}, ""},
		"another digest":      {good, "sha256:" + strings.Repeat("b", 64), catalog.Keys{key}, ""},
		"no digest":           {good, "", catalog.Keys{key}, ""},
		"changed payload":     {json.RawMessage(strings.Replace(string(good), `"payload":"ey`, `"payload":"IHs`, 1)), digest, catalog.Keys{key}, ""},
		"signature of a text": {envelope(t, "text/plain", about, mine), digest, catalog.Keys{key}, ""},
		"no statement":        {envelope(t, catalog.PayloadType, `{"_type":"x"}`, mine), digest, catalog.Keys{key}, ""},
	} {
		got, err := catalog.Definition{Digest: row.digest, Signature: row.signature}.Verify(row.keys)
		if got != row.key || (err == nil) != (row.key != "") || err != nil && !fault.Is(err, fault.UntrustedArtifact) {
			t.Errorf("%s: got key %q and %v, want key %q", name, got, err, row.key)
		}
	}
}

func TestKeysAreParsed(t *testing.T) {
	t.Parallel()
	standard := base64.StdEncoding.EncodeToString(slices.Repeat([]byte{0xfb}, 32))
	url := base64.RawURLEncoding.EncodeToString(slices.Repeat([]byte{0xfb}, 32))
	a, err := catalog.ParseKey(standard)
	b, again := catalog.ParseKey(url)
	if err != nil || again != nil || a.ID() != b.ID() {
		t.Errorf("got %v and %v, want one key in both alphabets", err, again)
	}
	for _, text := range []string{"", "AAAA", standard[1:], "ssh-ed25519 " + standard} {
		if _, err := catalog.ParseKey(text); err == nil {
			t.Errorf("%q: got a key, want an error", text)
		}
	}
}

func TestAdmissionOfAModel(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		state  catalog.State
		strict bool
		want   fault.Code
	}{
		{catalog.Active, false, ""},
		{catalog.Active, true, fault.UntrustedArtifact},
		{catalog.Retired, false, fault.PoolUnavailable},
		{catalog.Retired, true, fault.PoolUnavailable},
	} {
		err := catalog.Model{ID: "m", State: row.state}.Admit(row.strict, nil)
		if row.want == "" && err != nil || row.want != "" && !fault.Is(err, row.want) {
			t.Errorf("%s, strict %t: got %v, want %s", row.state, row.strict, err, row.want)
		}
	}
}

// TestEveryFaultOfADefinitionIsReported checks a valid definition and one with many faults.
func TestEveryFaultOfADefinitionIsReported(t *testing.T) {
	t.Parallel()
	valid := catalog.Definition{
		Digest: digest, Source: "hf:a/b", Engines: []platform.EngineKind{platform.EngineVLLM}, Workloads: catalog.Workloads(), Tags: []string{"a", "b"},
		Price: catalog.Price{Input: catalog.MaxPrice}, ContextTokens: catalog.MaxContextTokens,
	}
	if found := valid.Check(); len(found) > 0 {
		t.Errorf("got %v, want no fault", found)
	}
	wrong := catalog.Definition{
		Digest: "sha256:A", Source: "a b", Signature: json.RawMessage(`{}`), EngineModel: "a\nb", Tokenizer: strings.Repeat("a", 256),
		ContextTokens: -1, Price: catalog.Price{Input: -1, Cached: new(int64(0)), Output: catalog.MaxPrice + 1}, Tags: []string{"a", "a"},
	}
	var fields []string
	for _, f := range wrong.Check() {
		fields = append(fields, f.Field)
	}
	want := []string{"digest", "source", "signature", "engines", "workloads", "engine_model", "tokenizer", "context_tokens", "price.input_nanodollars", "price.output_nanodollars", "price.cached_nanodollars", "tags.1"}
	if !reflect.DeepEqual(fields, want) {
		t.Errorf("got the faults of %v, want those of %v", fields, want)
	}
}
