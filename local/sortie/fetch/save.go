package fetch

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Save writes a file atomically with the content that write writes. It replaces an existing
// file with other content only if force is set; otherwise it returns ErrExists.
func Save(path string, force bool, write func(io.Writer) error) error {
	part, err := newPart(path)
	if err != nil {
		return err
	}
	if err := write(part); err != nil {
		return errors.Join(err, part.drop())
	}
	if _, err := os.Stat(path); err == nil && !force {
		same, err := sameContent(path, part.file.Name())
		if err == nil && !same {
			err = fmt.Errorf("%s: %w", path, ErrExists)
		}
		return errors.Join(err, part.drop())
	}
	return part.keep(path)
}
