package porttest

import (
	"crypto/sha256"
	"io"
	"testing"

	"github.com/sortie-dev/sortie/shared/port"
)

func outputsUpload(t *testing.T, h OutputsHarness) {
	const key = "acme/artifacts/a"
	for _, size := range []int64{0, 5, 17 << 20} { // more than two parts of 8 MiB
		if err := h.Outputs.Upload(t.Context(), port.Accepted, key, "image/png", pattern(size), size); err != nil {
			t.Fatal(err)
		}
		body, object, err := h.Outputs.Open(t.Context(), port.Accepted, key, port.Span{})
		if err != nil {
			t.Fatal(err)
		}
		got, want := sha256.New(), sha256.New()
		n, err := io.Copy(got, body)
		if _, wrong := io.Copy(want, io.NewSectionReader(pattern(size), 0, size)); wrong != nil {
			t.Fatal(wrong)
		}
		if err != nil || body.Close() != nil || n != size || string(got.Sum(nil)) != string(want.Sum(nil)) || object.ContentType != "image/png" || object.Size != size {
			t.Errorf("upload of %d bytes: got %d bytes in %+v (%v)", size, n, object, err)
		}
	}
	const broken = 20 << 20
	if err := h.Outputs.Upload(t.Context(), port.Accepted, "acme/artifacts/b", "image/png", Interrupted(broken), broken); err == nil {
		t.Error("got success for content that cannot be read")
	}
	h.missing(t, port.Accepted, "acme/artifacts/b")
}
