// Package inifile reads setup.cfg as Python's configparser does, which is what
// setuptools reads it with: what an INI file means, and what is wrong with one,
// differs from reader to reader.
//
//	[DEFAULT]                 what all sections have
//	base = 1.0
//	[metadata]
//	version = %(base)s.post1  a value takes another one in; %% is a percent sign
//	# comment                 only where nothing else stands in the line
//	Keywords: a,              keys are read in lower case; : is as good as =
//	  b                       a line that is set in further goes on with the value
//
// Errors are in the words of Python 3.13.
package inifile
