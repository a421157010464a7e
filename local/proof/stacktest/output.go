package stacktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/sortie-dev/sortie/shared/adapter/r2"
)

// Pattern returns an output of size bytes in which all lines differ.
func Pattern(size int) []byte {
	text := make([]byte, 0, size+16)
	for line := 0; len(text) < size; line++ {
		text = fmt.Appendf(text, "%09d line\n", line)
	}
	return text[:size]
}

// upload uploads and reports an output of the size. Its content type differs from the content
// type of the format.
func upload(size string, env map[string]string) error {
	n, err := strconv.Atoi(size)
	if err != nil {
		return fmt.Errorf("malformed size of the output: %w", err)
	}
	uploader, err := r2.NewUploader(r2.Config{
		Endpoint: env["R2_ENDPOINT"], AccountID: env["R2_ACCOUNT_ID"], Uploads: env["R2_BUCKET"],
		AccessKeyID: env["R2_ACCESS_KEY_ID"], SecretAccessKey: env["R2_SECRET_ACCESS_KEY"],
	})
	if err != nil {
		return fmt.Errorf("cannot upload: %w", err)
	}
	key := "exports/" + env["TASK_ID"] + "/pattern.xml"
	if err := uploader.Upload(context.Background(), key, bytes.NewReader(Pattern(n)), int64(n), "text/html"); err != nil {
		return fmt.Errorf("cannot upload: %w", err)
	}
	body := fmt.Sprintf(`{"task_id":%q,"status":"success","output_r2_key":%q,"output_file_name":"pattern.xml","output_file_size":%d}`,
		env["TASK_ID"], key, n)
	if !callBack(env, body) {
		return errors.New("the callback was refused")
	}
	return nil
}
