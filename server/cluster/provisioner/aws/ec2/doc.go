// Package ec2 is the part of Amazon's EC2 API that machines of clusters need: run, describe and terminate instances,
// describe an image, and ask STS whose an access key is.
//
//	a request: url.Values ─▶ signed, sent, retried (the core of aws-sdk-go-v2) ─▶ XML ─▶ structs, or an *Error
//
// The SDK's own package for EC2 has 700 operations, and takes longer to compile than all the rest of this program
// (ADR 47). The names of fields are those of the API, version 2016-11-15.
package ec2
