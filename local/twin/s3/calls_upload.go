package s3

import (
	"encoding/xml"
	"net/http"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/s3api/utils"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"
)

// maxParts is the highest part number.
const maxParts = 10_000

// partNumber returns the parameter partNumber.
func (r *request) partNumber() (int32, error) {
	text := r.Query("partNumber")
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 || n > maxParts {
		return 0, s3err.GetInvalidArgumentErr(s3err.InvalidArgPartNumber, text)
	}
	return int32(n), nil
}

func (f *front) createUpload(r *request) (answer, error) {
	stored, err := r.metadata()
	if err != nil {
		return answer{}, err
	}
	algorithm, kind, err := utils.ParseCreateMpChecksumHeaders(r.Ctx)
	if err != nil {
		return answer{}, err
	}
	created, err := f.CreateMultipartUpload(r.RequestCtx(), s3response.CreateMultipartUploadInput{
		Bucket: &r.bucket, Key: &r.key,
		ContentType: &stored.ContentType, ContentDisposition: &stored.ContentDisposition, ContentEncoding: &stored.ContentEncoding,
		ContentLanguage: &stored.ContentLanguage, CacheControl: &stored.CacheControl, Expires: &stored.Expires, Metadata: stored.Metadata,
	})
	return answer{document: created, headers: map[string]*string{
		"x-amz-checksum-algorithm": utils.ConvertToStringPtr(algorithm), "x-amz-checksum-type": utils.ConvertToStringPtr(kind),
	}}, err
}

func (f *front) putPart(r *request) (answer, error) {
	number, err := r.partNumber()
	if err != nil {
		return answer{}, err
	}
	sent, err := r.content()
	if err != nil {
		return answer{}, err
	}
	put, err := f.UploadPart(r.RequestCtx(), &awss3.UploadPartInput{
		Bucket: &r.bucket, Key: &r.key, UploadId: aws.String(r.Query("uploadId")), PartNumber: &number, Body: sent.body, ContentLength: &sent.length,
	})
	if err != nil {
		return answer{}, err
	}
	return answer{headers: map[string]*string{"ETag": put.ETag}}, nil
}

func (f *front) copyPart(r *request) (answer, error) {
	source, err := f.copied(r)
	if err != nil {
		return answer{}, err
	}
	number, err := r.partNumber()
	if err != nil {
		return answer{}, err
	}
	conditions := utils.ParsePreconditionHeaders(r.Ctx, utils.WithCopySource())
	made, err := f.UploadPartCopy(r.RequestCtx(), &awss3.UploadPartCopyInput{
		Bucket: &r.bucket, Key: &r.key, UploadId: aws.String(r.Query("uploadId")), PartNumber: &number,
		CopySource: &source, CopySourceRange: aws.String(r.Get(copySource + "-Range")),
		CopySourceIfMatch: conditions.IfMatch, CopySourceIfNoneMatch: conditions.IfNoneMatch,
		CopySourceIfModifiedSince: conditions.IfModSince, CopySourceIfUnmodifiedSince: conditions.IfUnmodeSince,
	})
	return answer{document: made}, err
}

func (f *front) completeUpload(r *request) (answer, error) {
	var asked s3response.CompleteMultipartUploadRequestBody
	if err := xml.Unmarshal(r.whole, &asked); err != nil || len(asked.Parts) == 0 {
		return answer{}, s3err.GetAPIError(s3err.ErrMalformedXML)
	}
	if _, err := utils.ParseCompleteMpChecksumHeaders(r.Ctx); err != nil {
		return answer{}, err
	}
	match, noneMatch := utils.ParsePreconditionMatchHeaders(r.Ctx)
	made, _, err := f.CompleteMultipartUpload(r.RequestCtx(), &awss3.CompleteMultipartUploadInput{
		Bucket: &r.bucket, Key: &r.key, UploadId: aws.String(r.Query("uploadId")), IfMatch: match, IfNoneMatch: noneMatch,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: asked.Parts},
	})
	made.Location = aws.String(utils.GenerateObjectLocation(r.Ctx, "", r.bucket, r.key))
	return answer{document: made}, err
}

func (f *front) abortUpload(r *request) (answer, error) {
	return answer{status: http.StatusNoContent}, f.AbortMultipartUpload(r.RequestCtx(), &awss3.AbortMultipartUploadInput{
		Bucket: &r.bucket, Key: &r.key, UploadId: aws.String(r.Query("uploadId")),
	})
}

func (f *front) listParts(r *request) (answer, error) {
	if _, err := utils.ParseMaxLimiter(r.Query("part-number-marker"), utils.LimiterTypePartNumberMarker); err != nil {
		return answer{}, err
	}
	most, err := utils.ParseMaxLimiter(r.Query("max-parts"), utils.LimiterTypeMaxParts)
	if err != nil {
		return answer{}, err
	}
	page, err := f.ListParts(r.RequestCtx(), &awss3.ListPartsInput{
		Bucket: &r.bucket, Key: &r.key, UploadId: aws.String(r.Query("uploadId")), MaxParts: &most,
	})
	return answer{document: page}, err
}
