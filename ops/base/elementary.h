// Elementary functions in double, the same bits on every machine: built of IEEE additions, multiplications,
// divisions and roots, each rounded, where those of a C library are others from one release and CPU to the
// next. Errors are below 1e-14 of the result, so that rounding to float is right but for a few in 10^7.
// Special values are those of <cmath>.
// *_isa.cc files may include it.
#pragma once

namespace tilesmith::elementary {

double Exp(double x);
double Expm1(double x);
double Log(double x);
double Log1p(double x);
// x^y; by multiplications where y is an integer up to 1024, so that what is exact is found exactly.
double Pow(double x, double y);
// Arguments beyond 10^5 are taken as floats.
double Sin(double x);
double Cos(double x);
double Tan(double x);
double Asin(double x);
double Acos(double x);
double Atan(double x);
double Sinh(double x);
double Cosh(double x);
double Tanh(double x);
double Asinh(double x);
double Acosh(double x);
double Atanh(double x);
double Erf(double x);
// 1 - Erf(x)
double Erfc(double x);

}  // namespace tilesmith::elementary
