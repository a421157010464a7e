package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// contentPart is a part of the content of a message. The image of a chat is an object, that of a
// response a text beside its detail.
type contentPart struct {
	Type     string          `json:"type"`
	Text     *string         `json:"text"`
	ImageURL json.RawMessage `json:"image_url"`
	Detail   string          `json:"detail"`
}

// imagesOf returns the parts of a content with images; nil for one without.
func imagesOf(field string, value json.RawMessage) (found []port.ContentPart, err error) {
	var parts []contentPart
	if json.Unmarshal(value, &parts) != nil {
		return nil, nil //nolint:nilerr // contentOf reports it
	}
	images := 0
	for i, p := range parts {
		at := fmt.Sprintf("%s.%d", field, i)
		switch p.Type {
		case "text", "input_text", "output_text":
			if p.Text == nil {
				return nil, fault.Invalid(at+".text", "missing text of a part of the content")
			}
			found = append(found, port.ContentPart{Text: *p.Text})
		case "image_url", "input_image":
			image, err := p.image(at)
			if err != nil {
				return nil, err
			}
			images++
			found = append(found, port.ContentPart{Image: image})
		default:
			if images == 0 {
				return nil, nil // contentOf reports it
			}
			return nil, unsupported(at+".type", "parts with a text or an image")
		}
	}
	if images == 0 {
		return nil, nil
	}
	return found, nil
}

// image returns the image of a part. at is the path of the part.
func (p contentPart) image(at string) (*port.Image, error) {
	var url string
	detail := p.Detail
	if json.Unmarshal(p.ImageURL, &url) != nil {
		var object struct {
			URL    string `json:"url"`
			Detail string `json:"detail"`
		}
		if !given(p.ImageURL) || json.Unmarshal(p.ImageURL, &object) != nil {
			return nil, fault.Invalid(at+".image_url", "missing or malformed image, want a data URL or artifact:ID")
		}
		url, detail = object.URL, object.Detail
	}
	return Image(at+".image_url", url, detail)
}

// Image returns the image of a URL: a data URL in base64, or artifact: and the id of an artifact. No
// address is fetched. Fault: InvalidParams with the field.
func Image(field, url, detail string) (*port.Image, error) {
	if id, ok := strings.CutPrefix(url, "artifact:"); ok {
		return &port.Image{Artifact: strings.TrimPrefix(id, "sha256:"), Detail: detail}, nil
	}
	kind, content, ok := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
	if !ok || !strings.HasPrefix(url, "data:") {
		return nil, unsupported(field, "a data URL in base64, or artifact: and the id of an artifact; no address is fetched")
	}
	data, err := base64.StdEncoding.DecodeString(content)
	if err != nil {
		return nil, unsupported(field, "base64 with padding")
	}
	return &port.Image{MediaType: strings.ToLower(kind), Data: data, Detail: detail}, nil
}
