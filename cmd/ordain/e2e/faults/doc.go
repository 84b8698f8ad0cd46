// Package faults tells what a whole server does when something is wrong: bad models,
// handlers that misbehave, a full disk, a killed process, bodies that grow, pages of
// other sites, attacks from one environment on another; and who may pass its doors.
package faults
