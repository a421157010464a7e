package inference

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/artifact"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Limits of images.
const (
	// Images is the maximum number of images in a request.
	Images = 16
	// ImageSize is the maximum size of an image that is an artifact, in bytes. RequestSize limits the
	// others.
	ImageSize = 8 << 20
	// imageTokens is the estimated number of tokens of an image, longestImage an upper bound.
	imageTokens  = 1024
	longestImage = 32768
)

// imageTypes maps the media types of images to the first bytes of their files.
var imageTypes = map[string][]string{
	"image/png": {"\x89PNG\r\n\x1a\n"}, "image/jpeg": {"\xff\xd8\xff"}, "image/gif": {"GIF87a", "GIF89a"}, "image/webp": {"RIFF"},
}

// Images returns the number of images in the messages.
func (q Request) Images() (n int) {
	for _, m := range q.Messages {
		for _, p := range m.Parts {
			if p.Image != nil {
				n++
			}
		}
	}
	return n
}

// CheckImage returns an InvalidParams fault of a field if the bytes of an image are not what its media
// type says.
func CheckImage(field string, i port.Image) error {
	if err := CheckImageKind(field, i.MediaType, int64(len(i.Data))); err != nil {
		return err
	}
	if !slices.ContainsFunc(imageTypes[i.MediaType], func(b string) bool { return bytes.HasPrefix(i.Data, []byte(b)) }) {
		return invalidParams(field, "the bytes are no %s", i.MediaType)
	}
	return nil
}

// CheckImageKind returns an InvalidParams fault of a field for a media type, or a size in bytes, that an
// image cannot have.
func CheckImageKind(field, mediaType string, size int64) error {
	switch _, known := imageTypes[mediaType]; {
	case !known:
		return invalidParams(field, "the media type %.60q, want image/png, image/jpeg, image/gif or image/webp", mediaType)
	case size <= 0 || size > ImageSize:
		return invalidParams(field, "an image of %d bytes, want 1 to %d", size, ImageSize)
	}
	return nil
}

// StoredImages calls each with the field and the artifact of each image that is one. It returns the first
// error of each.
func (q Request) StoredImages(each func(field string, i *port.Image) error) error {
	for i, m := range q.Messages {
		for n, p := range m.Parts {
			if p.Image == nil || p.Image.Artifact == "" {
				continue
			}
			if err := each(fmt.Sprintf("messages.%d.content.%d", i, n), p.Image); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkParts returns the fault of the first invalid part of a message. at is the path of the message.
func checkParts(at string, m port.Message) error {
	if len(m.Parts) > 0 && m.Content != "" {
		return fault.Invalid(at+"content", "a text and parts, want one of them")
	}
	for i, p := range m.Parts {
		field := fmt.Sprintf("%scontent.%d", at, i)
		switch image := p.Image; {
		case image == nil:
			continue
		case m.Role != "user":
			return invalidParams(field, "a message of the role %s has no images, want the role user", m.Role)
		case !slices.Contains([]string{"", "auto", "low", "high"}, image.Detail):
			return invalidParams(field, "unknown detail %.40q, want auto, low or high", image.Detail)
		case image.Artifact != "" && !artifact.ValidID(image.Artifact):
			return invalidParams(field, "malformed id %.80q of an artifact", image.Artifact)
		case image.Artifact == "":
			if err := CheckImage(field, *image); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkImages returns the fault of too many images.
func (q Request) checkImages() error {
	if n := q.Images(); n > Images {
		return invalidParams("messages", "%d images, want at most %d", n, Images)
	}
	return nil
}

// sizeOfParts returns the size of the parts of a message in bytes, with the estimate for images.
func sizeOfParts(of []port.ContentPart) (size int) {
	for _, p := range of {
		if size += len(p.Text); p.Image != nil {
			size += imageTokens * bytesPerToken
		}
	}
	return size
}

// TextOf returns the text of a message, without its images.
func TextOf(m port.Message) string {
	if len(m.Parts) == 0 {
		return m.Content
	}
	var texts []string
	for _, p := range m.Parts {
		if p.Image == nil {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}
