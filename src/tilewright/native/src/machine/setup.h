// What the engines were last programmed to do, and the complaints when an op finds them otherwise.
#pragma once
#include "machine.h"

namespace tw {

void check_started(const char* name, Loc at);
bool same_mode(const Mode& have, const Mode& want, bool unpack);
void check_mode(const char* name, const Mode& have, const Mode& want, bool unpack, Loc at);
void check_source_format(const char* name, const Buffer& buffer, const SourceSetup& setup, const char* side, Loc at);
void check_page_size(const char* name, const Buffer& buffer, Loc at);
void set_math_mode(const Mode& mode);
bool reduces_by_matmul(const Mode& mode);  // SUM and AVG along rows
bool scaler_in_srca(const Mode& mode);     // since 0.78 they are products, and the scaler takes SrcA
u32 source_mask(const SourceSetup& setup, bool wide);

}  // namespace tw
