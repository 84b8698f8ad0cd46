package api

import (
	"time"

	"ordain.dev/ordain/internal/intent"
)

// timestamp is a time in an answer: microseconds and offset, always.
type timestamp string

const timeLayout = "2006-01-02T15:04:05.000000-07:00"

func formatTime(t time.Time) string { return t.UTC().Format(timeLayout) }

// stamp shows a time.
func stamp(t time.Time) timestamp { return timestamp(formatTime(t)) }

// maybe shows a time that may not be known: null.
func maybe(t *time.Time) *timestamp {
	if t == nil {
		return nil
	}
	return unlessZero(*t)
}

// unlessZero shows a time that is null when it is zero.
func unlessZero(t time.Time) *timestamp {
	if t.IsZero() {
		return nil
	}
	return new(stamp(t))
}

// orNull returns a pointer to a value, which is null when it is the zero value of its type.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// notNil returns an empty list for nil, which would be null in an answer.
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// listOrNull returns a pointer to a list, which is null when it is empty.
func listOrNull[T any](list []T) *[]T {
	if len(list) == 0 {
		return nil
	}
	return &list
}

// ids shows resource ids as texts.
func ids(all []intent.ResourceID) []string { return listed(all, intent.ResourceID.String) }

// parseIDs reads the resource ids that a client sent as the argument name.
func parseIDs(name string, texts []string) (ids []intent.ResourceID, err error) {
	for _, text := range texts {
		id, err := intent.ParseResourceID(text)
		if err != nil {
			return nil, invalid("%s: %v", name, err)
		}
		ids = append(ids, id)
	}
	return ids, nil
}
