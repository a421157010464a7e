package outside

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/sortie-dev/sortie/functions/worker"
	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// Reference returns the export of the sample collection. It calls the export worker as a
// function.
func Reference(t *testing.T, format string) []byte {
	t.Helper()
	source := httptest.NewServer(samples.Sample().Handler(clock.System{}))
	defer source.Close()
	client := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	defer client.Close()
	file, log := &upload{}, &bytes.Buffer{}
	code := worker.MainWith(t.Context(), []string{
		"TASK_ID=reference", "PI=" + samples.SampleRoot, "EXPORT_FORMAT=" + format, `EXPORT_OPTIONS={"recursive":true}`,
		"R2_ACCOUNT_ID=none", "R2_ACCESS_KEY_ID=none", "R2_SECRET_ACCESS_KEY=none",
		"CALLBACK_URL=" + client.URL, "SOURCE_API_URL=" + source.URL,
	}, log, func(worker.BucketAuth) (worker.Uploader, error) { return file, nil })
	if code != 0 || len(file.body) == 0 {
		t.Fatalf("worker in this process: got exit code %d, want 0: %s", code, log)
	}
	return file.body
}

// upload stores the file that a worker uploads.
type upload struct{ body []byte }

// Upload implements worker.Uploader.
func (u *upload) Upload(_ context.Context, _ string, body io.ReaderAt, size int64, _ string) (err error) {
	u.body, err = io.ReadAll(io.NewSectionReader(body, 0, size))
	return err
}
