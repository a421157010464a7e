package openai_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/domain/artifact"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/openai"
)

// pixel begins like a PNG.
const pixel = "\x89PNG\r\n\x1a\npixels"

// dataURL returns a data URL of bytes.
func dataURL(kind, content string) string {
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString([]byte(content))
}

// stored stores bytes as an artifact and returns its id.
func (s *served) stored(t *testing.T, kind, content string) string {
	t.Helper()
	a, _, err := s.System.Artifacts.Create(t.Context(), apitest.Tenant, "test", artifact.Draft{
		Kind: "image", Bytes: &artifact.Bytes{MediaType: kind, Content: strings.NewReader(content), Size: int64(len(content))},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a.ID
}

// TestImagesReachTheEngine sends the same image by a data URL and as an artifact, in each API. The
// answer of the mock depends on the bytes.
func TestImagesReachTheEngine(t *testing.T) {
	t.Parallel()
	s := setup(t)
	text := func(url string) string {
		t.Helper()
		const body = `{"model":"mock","max_tokens":4,"messages":[{"role":"user","content":[{"type":"text","text":"what is it?"},{"type":"image_url","image_url":{"url":"URL","detail":"low"}}]}]}`
		is, _ := apitest.Decoded[openai.Completion](t, s.Stage, http.MethodPost, "/v1/chat/completions", strings.ReplaceAll(body, "URL", url), http.StatusOK)
		return *is.Choices[0].Message.Content
	}
	first := text(dataURL("image/png", pixel))
	if other := text(dataURL("image/png", pixel+"!")); first == "" || other == first {
		t.Errorf("got %q and %q, want answers to the images", first, other)
	}
	if same := text("artifact:sha256:" + s.stored(t, "image/png", pixel)); same != first {
		t.Errorf("got %q for the artifact, want %q", same, first)
	}
	is, _ := apitest.Decoded[openai.Response](t, s.Stage, http.MethodPost, "/v1/responses",
		`{"model":"mock","max_output_tokens":4,"input":[{"role":"user","content":[{"type":"input_text","text":"what is it?"},{"type":"input_image","image_url":"`+dataURL("image/png", pixel)+`"}]}]}`, http.StatusOK)
	if got := is.Output[0].Content[0].Text; got != first {
		t.Errorf("got the response %q, want %q", got, first)
	}
	task, _ := apitest.Decoded[contract.TaskAccepted](t, s.Stage, http.MethodPost, "/v1/tasks",
		`{"model_ref":"mock","max_tokens":4,"messages":[{"role":"user","content":"what is it?","images":["`+dataURL("image/png", pixel)+`"]}]}`, http.StatusAccepted)
	if got := s.Call(t, http.MethodGet, "/v1/tasks/"+task.TaskID+"/stream", "").Body; strings.Count(got, "event: token") != 4 {
		t.Errorf("got %s, want an answer", got)
	}
}

// TestImagesAreRefused sends addresses, other bytes and types, and artifacts that do not exist.
func TestImagesAreRefused(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.Client = http.DefaultClient // some bodies do not match the document
	const part = "messages.0.content.1"
	for url, field := range map[string]string{
		"https://example.org/a.png":                        part + ".image_url",
		"file:///etc/passwd":                               part + ".image_url",
		"http://169.254.169.254/latest":                    part + ".image_url",
		"data:image/png,abc":                               part + ".image_url",
		"data:image/png;base64,%%%":                        part + ".image_url",
		dataURL("image/png", "GIF89a"):                     part,
		dataURL("image/svg+xml", "<svg/>"):                 part,
		dataURL("text/html", "<html>"):                     part,
		"data:image/png;base64,":                           part,
		"artifact:../../etc/passwd":                        part,
		"artifact:sha256:" + strings.Repeat("0", 64):       part,
		"artifact:" + s.stored(t, "image/png", "no image"): part,
		"artifact:" + s.stored(t, "text/html", pixel):      part,
	} {
		answer := s.Call(t, http.MethodPost, "/v1/chat/completions", `{"model":"mock","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"`+url+`"}}]}]}`)
		if answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, `"param":"`+field+`"`) {
			t.Errorf("%s: got %d %s, want the member %s refused", url, answer.Status, answer.Body, field)
		}
	}
	image := `{"type":"image_url","image_url":{"url":"` + dataURL("image/png", pixel) + `"}}`
	for body, field := range map[string]string{
		`{"model":"mock","messages":[{"role":"system","content":[` + image + `]}]}`:                                         "messages.0.content.0",
		`{"model":"mock","messages":[{"role":"user","content":[` + strings.Repeat(image+",", 16) + image + `]}]}`:           "messages",
		`{"model":"mock","messages":[{"role":"user","content":[` + image + `,{"type":"input_audio"}]}]}`:                    "messages.0.content.1.type",
		`{"model":"mock","messages":[{"role":"user","content":[{"type":"image_url"}]}]}`:                                    "messages.0.content.0.image_url",
		`{"model":"mock","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"a","detail":1}}]}]}`: "messages.0.content.0.image_url",
	} {
		answer := s.Call(t, http.MethodPost, "/v1/chat/completions", body)
		if answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, `"param":"`+field+`"`) {
			t.Errorf("%.200s: got %d %s, want the member %s refused", body, answer.Status, answer.Body, field)
		}
	}
}

// TestImageArtifactsAreCheckedAtOnce submits tasks, which do not wait for an answer, with artifacts that
// do not exist, are no images or belong to another tenant.
func TestImageArtifactsAreCheckedAtOnce(t *testing.T) {
	t.Parallel()
	s := setup(t)
	foreign, _, err := s.System.Artifacts.Create(t.Context(), "other", "test", artifact.Draft{
		Kind: "image", Bytes: &artifact.Bytes{MediaType: "image/png", Content: strings.NewReader(pixel + "of another"), Size: int64(len(pixel + "of another"))},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, id := range map[string]string{
		"unknown": strings.Repeat("0", 64), "another type": s.stored(t, "text/html", pixel), "another tenant": foreign.ID,
	} {
		answer := s.Call(t, http.MethodPost, "/v1/tasks", `{"model_ref":"mock","messages":[{"role":"user","content":"a","images":["artifact:`+id+`"]}]}`)
		if answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, "messages.0.") {
			t.Errorf("%s: got %d %s, want the image refused", name, answer.Status, answer.Body)
		}
	}
}
