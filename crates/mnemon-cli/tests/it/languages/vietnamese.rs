//! Vietnamese: questions as people type them, a third of them without diacritics.

use super::Language;

pub(super) const VIETNAMESE: Language = Language {
    name: "Vietnamese",
    pairs: PAIRS,
    others: OTHERS,
};

/// A question, and the note that answers it.
const PAIRS: &[(&str, &str)] = &[
    (
        "nhóm chọn cơ sở dữ liệu nào cho thanh toán?",
        "Chúng tôi quyết định dùng PostgreSQL làm cơ sở dữ liệu cho dịch vụ thanh toán.",
    ),
    (
        "con gái chị Lan sinh năm bao nhiêu",
        "Chị Lan có một cô con gái sinh năm 2019, tên ở nhà là Bống.",
    ),
    (
        "Anh Minh có bị dị ứng thức ăn gì không?",
        "Anh Minh dị ứng với tôm và cua, đi ăn hải sản phải báo trước.",
    ),
    (
        "mấy giờ họp với khách Nhật",
        "Cuộc họp với khách hàng Nhật được dời sang 15 giờ chiều thứ Năm.",
    ),
    (
        "mật khẩu wifi văn phòng",
        "Wifi ở văn phòng Hà Nội: tên mạng KhachMoi, mật khẩu đổi vào ngày đầu tháng.",
    ),
    (
        "món phở yêu thích của bố",
        "Bố thích ăn phở bò tái nạm ở quán đầu ngõ, không lấy hành.",
    ),
    (
        "lịch tiêm phòng của mèo",
        "Mèo Mướp cần đi tiêm phòng dại vào tháng 9 tại phòng khám thú y Quận 3.",
    ),
    (
        "Vì sao chúng ta bỏ Redis?",
        "Đã bỏ Redis khỏi kiến trúc vì tốn bộ nhớ và khó vận hành.",
    ),
    (
        "chuyến bay ra Đà Nẵng lúc nào",
        "Vé máy bay đi Đà Nẵng: chuyến VN123, khởi hành 6 giờ 40 sáng ngày 12.",
    ),
    (
        "em gái tôi học trường nào",
        "Em gái đang học năm ba ngành Dược ở Đại học Y Dược Huế.",
    ),
    (
        "Ai phụ trách viết tài liệu hướng dẫn?",
        "Tài liệu hướng dẫn sử dụng do bạn Thảo viết, hạn nộp cuối tuần này.",
    ),
    (
        "tiền thuê nhà hàng tháng",
        "Nhà thuê ở Cầu Giấy giá 7 triệu một tháng, đóng tiền ba tháng một lần.",
    ),
    (
        "bác sĩ dặn uống thuốc thế nào",
        "Theo lời bác sĩ, mẹ phải uống thuốc huyết áp mỗi sáng sau khi ăn.",
    ),
    (
        "lỗi đăng nhập trên điện thoại",
        "Người dùng báo lỗi: ứng dụng điện thoại bị thoát ngay sau màn hình đăng nhập.",
    ),
    (
        "kế hoạch đi du lịch hè",
        "Mùa hè này cả nhà định du lịch Phú Quốc bốn ngày ba đêm.",
    ),
    (
        "Khi nào hết hạn bảo hiểm xe?",
        "Bảo hiểm xe ô tô hết hiệu lực ngày 30 tháng 11 năm 2025, nhớ gia hạn.",
    ),
    (
        "quà sinh nhật cho vợ",
        "Vợ muốn được tặng một chiếc máy ảnh phim nhân dịp sinh nhật.",
    ),
    (
        "thầy giáo dạy đàn của con",
        "Con trai học đàn piano với thầy Khoa vào tối thứ Ba và thứ Sáu.",
    ),
    (
        "chạy bộ buổi sáng bao nhiêu cây số",
        "Mục tiêu luyện tập: mỗi buổi sáng chạy 5 cây số quanh hồ Tây.",
    ),
    (
        "cách triển khai lên máy chủ thử nghiệm",
        "Muốn triển khai bản thử nghiệm thì chạy lệnh make staging trên máy chủ số 2.",
    ),
    (
        "ông nội quê ở đâu",
        "Quê nội ở Nam Định; ông làm thợ mộc đến năm 70 tuổi.",
    ),
    (
        "khách hàng phàn nàn về giao hàng",
        "Nhiều khách phàn nàn đơn hàng giao chậm hơn hai ngày so với lời hứa.",
    ),
    (
        "sách đang đọc dở",
        "Tôi đang đọc cuốn sách \"Nỗi buồn chiến tranh\" của Bảo Ninh, mới tới trang 120.",
    ),
    (
        "trời mưa có hoãn trận bóng không",
        "Trận bóng đá chiều Chủ nhật sẽ hoãn nếu trời mưa to.",
    ),
    (
        "ngân sách quảng cáo quý tới",
        "Ngân sách dành cho quảng cáo trong quý 3 bị cắt còn 40 triệu đồng.",
    ),
    (
        "phỏng vấn ứng viên backend",
        "Ứng viên backend Trần Quốc Huy phỏng vấn vòng hai rất tốt, đề nghị nhận.",
    ),
    (
        "cây trong vườn cần tưới ra sao",
        "Vườn sân thượng: tưới cây hai lần một ngày vào mùa khô.",
    ),
    (
        "có nên uống cà phê buổi tối",
        "Không uống cà phê sau 4 giờ chiều vì sẽ mất ngủ.",
    ),
    // Without diacritics.
    (
        "quyet dinh ve ngon ngu lap trinh",
        "Nhóm quyết định viết lại lõi bằng ngôn ngữ lập trình Rust.",
    ),
    (
        "dia chi nha me",
        "Địa chỉ nhà mẹ: số 12 đường Trần Phú, phường 4, Đà Lạt.",
    ),
    (
        "so dien thoai tho sua ong nuoc",
        "Thợ sửa ống nước tên Tuấn, điện thoại 0903 555 777.",
    ),
    (
        "ban than cua Hung ten gi",
        "Hùng có người bạn thân là Đức, quen nhau từ hồi cấp ba.",
    ),
    (
        "bao gio nop bao cao thue",
        "Báo cáo thuế phải nộp trước ngày 20 hằng tháng.",
    ),
    (
        "may in bi ket giay",
        "Máy in tầng hai hay kẹt giấy, phải mở nắp sau để rút ra.",
    ),
    (
        "thich nghe nhac gi",
        "Tôi thích nghe nhạc Trịnh Công Sơn khi làm việc khuya.",
    ),
    (
        "lich cat toc",
        "Đã hẹn cắt tóc lúc 10 giờ sáng thứ Bảy ở tiệm cô Hoa.",
    ),
    (
        "nang cap goi cuoc internet",
        "Gói cước internet gia đình được nâng cấp lên 300 Mbps từ tháng trước.",
    ),
    (
        "dau goi khi leo cau thang",
        "Bà bị đau đầu gối, không nên leo cầu thang nhiều.",
    ),
    (
        "hop dong lao dong ky bao lau",
        "Hợp đồng lao động với công ty mới có thời hạn hai năm, ký hôm qua.",
    ),
    (
        "toi muon hoc tieng nhat",
        "Mục tiêu năm nay: học tiếng Nhật đến trình độ N3.",
    ),
    (
        "cong thuc nau bun bo",
        "Công thức bún bò Huế của dì: ninh xương sáu tiếng, thêm sả và mắm ruốc.",
    ),
    (
        "don xin nghi phep",
        "Nghỉ phép từ 3 đến 7 tháng 6, đơn đã được trưởng phòng duyệt.",
    ),
];

const OTHERS: &[&str] = &[
    "Siêu thị gần nhà mở cửa đến 22 giờ.",
    "Đội thiết kế đổi màu chủ đạo sang xanh lá.",
    "Hôm qua trời nóng gần 39 độ.",
    "Nhớ mua sữa, trứng và bột giặt.",
    "Thư viện thành phố đóng cửa vào thứ Hai.",
    "Bản phát hành kế tiếp sẽ có chế độ tối.",
    "Xe máy cần thay nhớt sau 2000 cây số.",
    "Bạn Phương mới chuyển sang phòng nhân sự.",
    "Phim cuối tuần trước khá dài và hơi buồn.",
    "Máy giặt kêu to khi vắt.",
    "Quán cà phê góc phố có chỗ ngồi yên tĩnh.",
    "Khóa cửa trước khi rời khỏi kho.",
    "Bài kiểm tra toán của lớp 9A lùi một tuần.",
    "Trang chủ tải chậm vì ảnh quá lớn.",
    "Tết năm nay được nghỉ chín ngày.",
    "Cô hàng xóm nuôi hai con chó nhỏ.",
    "Kiểm thử tự động chạy mỗi đêm lúc 2 giờ.",
    "Mạng nội bộ sẽ bảo trì vào cuối tuần.",
    "Vé xem ca nhạc đã bán hết.",
    "Nước mắm để ở ngăn tủ dưới cùng.",
    "Giá vàng tăng nhẹ trong phiên sáng nay.",
    "Tài khoản ngân hàng phụ dùng để tiết kiệm.",
    "Chìa khóa dự phòng gửi ở nhà bác Tư.",
    "Bóng đèn nhà bếp cần thay loại 9 oát.",
    "Hội thảo trực tuyến có hơn hai trăm người tham dự.",
    "Bộ bàn ghế mới giao vào chiều mai.",
    "Nhân viên mới cần làm thẻ ra vào.",
    "Tàu điện ngầm tuyến số 1 đã chạy thử.",
    "Lớp yoga chuyển sang phòng tập tầng năm.",
    "Dữ liệu sao lưu được giữ trong 90 ngày.",
];
